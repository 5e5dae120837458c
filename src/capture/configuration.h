// How recorders that encode by themselves set up the trace unit, and what bundles say of it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "capture/record_options.h"
#include "capture/tsc.h"
#include "softpt/config.h"
#include "trace/bundle.h"

namespace ptkit::capture {

[[nodiscard]] softpt::UnitConfig unit_config(const RecordOptions& options);
// The same as registers, with this processor and its clock as far as it is known by now.
[[nodiscard]] trace::Configuration configuration(const RecordOptions& options,
                                                 const TscCalibration& calibration);
// What CPUID.14H.0:ECX[31] ("LIP") says of them.
[[nodiscard]] constexpr trace::IpPayloads ip_payloads(bool lip) noexcept {
  return lip ? trace::IpPayloads::LINEAR : trace::IpPayloads::EFFECTIVE;
}
// Says which addresses the unit compares, and in IA32_RTIT_CTL (ADDRn_CFG) as what; four at most.
void set_ranges(std::span<const trace::AddressRange> ranges, trace::Configuration& out);

[[nodiscard]] std::int64_t real_time_ns();  // CLOCK_REALTIME
[[nodiscard]] std::string machine();        // kernel and processor, in words

}  // namespace ptkit::capture
