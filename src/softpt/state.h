// What PacketGenerator consists of; included by its two .cpp files only.
#pragma once

#include "softpt/generator.h"
#include "softpt/packet_generator.h"

namespace ptkit::softpt {

struct PacketGenerator::State : Generator {
  using Generator::Generator;
};

}  // namespace ptkit::softpt
