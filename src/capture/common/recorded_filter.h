// A trace unit's filter and IP payloads in the configuration of a bundle.
#pragma once

#include <span>

#include "trace/bundle.h"

namespace ptkit::capture {

// The IP payloads by CPUID.14H.0:ECX[31] ("LIP").
[[nodiscard]] constexpr trace::IpPayloads ip_payloads(bool lip) noexcept {
  return lip ? trace::IpPayloads::LINEAR : trace::IpPayloads::EFFECTIVE;
}
// Sets up to four address ranges, and their kinds in IA32_RTIT_CTL (ADDRn_CFG).
void set_ranges(std::span<const trace::AddressRange> ranges, trace::Configuration& out);

}  // namespace ptkit::capture
