// The beginning of streams of fuzz targets.
#pragma once

#include <cstdint>
#include <vector>

namespace ptkit::test {

inline constexpr std::uint64_t kCode = 0x1000;

// PSB, MODE.Exec, FUP at kCode, PSBEND: lets the packets that follow mean something.
inline std::vector<std::uint8_t> psb_header(std::uint8_t mode) {
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 8; ++i) bytes.insert(bytes.end(), {0x02, 0x82});
  bytes.insert(bytes.end(), {0x99, static_cast<std::uint8_t>(mode % 3)});
  bytes.insert(bytes.end(), {0x7d, 0x00, 0x10, 0, 0, 0, 0});
  bytes.insert(bytes.end(), {0x02, 0x23});
  return bytes;
}

}  // namespace ptkit::test
