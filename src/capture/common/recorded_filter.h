// A trace unit's filter and IP payloads in the configuration of a bundle.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "ptkit/rtit_regs.h"
#include "trace/bundle.h"

namespace ptkit::capture {

// The IP payloads by CPUID.14H.0:ECX[31] ("LIP").
[[nodiscard]] constexpr trace::IpPayloads ip_payloads(bool lip) noexcept {
  return lip ? trace::IpPayloads::LINEAR : trace::IpPayloads::EFFECTIVE;
}
// Sets up to four address ranges, and their kinds in IA32_RTIT_CTL (ADDRn_CFG).
inline void set_ranges(std::span<const trace::AddressRange> ranges, trace::Configuration& out) {
  out.ranges_known = true;
  for (std::size_t i = 0; i < std::min(ranges.size(), out.ranges.size()); ++i) {
    out.ranges[i] = ranges[i];
    out.rtit_ctl |= static_cast<std::uint64_t>(ranges[i].kind)
                    << (PT_CTL_ADDR0_CFG_SHIFT + PT_CTL_ADDR_CFG_WIDTH * i);
  }
}

}  // namespace ptkit::capture
