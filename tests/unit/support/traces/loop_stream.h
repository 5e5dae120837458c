// A loop of one instruction, and streams of it.
#pragma once

#include <string>
#include <vector>

#include "scene.h"

namespace ptkit::flow {

// 1000 jz 1000; 1002 nop
inline const std::vector<std::uint8_t> kLoop{0x74, 0xfe, 0x90};

// The loop is gone through so many times, and left.
inline std::vector<std::uint8_t> loop(unsigned times) {
  Scene scene;
  scene.begin();
  for (; times >= 6; times -= 6) scene.tnt("tttttt");
  return scene.tnt((std::string(times, 't') + "n").c_str()).end(0x1002).bytes();
}

}  // namespace ptkit::flow
