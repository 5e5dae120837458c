// Faults of a trace unit that tests plant: `host fault NAME` in the guest (guest/host.c).
#pragma once

#include <cstdint>

namespace ptkit::emulated {

enum class Fault : std::uint8_t {
  NONE,
  TIME,       // MTC and TMA count the crystal clock at 4/5 of the rate that CPUID 15H says
  FILTER,     // the end of each address range is 16 bytes too far
  TOPA,       // the last eight bytes of a ToPA region are written as zeros
  INTERRUPT,  // a region with INT is filled, and no interrupt comes
  RETURNS,    // of 32 RETs that are compressed, one is written as a branch that is not taken
};

constexpr unsigned kFaults = 6;

}  // namespace ptkit::emulated
