// Settings of a recording that follow from IA32_RTIT_CTL.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "ptkit/rtit_regs.h"
#include "trace/bundle.h"

namespace ptkit::trace {

// True if IA32_RTIT_CTL uses no address range (all ADDRn_CFG are 0). Not for a value of perf's event, to
// which the kernel adds ADDRn_CFG.
[[nodiscard]] constexpr bool uses_no_range(std::uint64_t rtit_ctl) noexcept {
  constexpr unsigned kRanges = 4;
  constexpr std::uint64_t kAll = base::bit(kRanges * PT_CTL_ADDR_CFG_WIDTH) - 1;
  return (rtit_ctl >> PT_CTL_ADDR0_CFG_SHIFT & kAll) == 0;
}

// Sets the control register as it was programmed. MTCFreq has no meaning while MTC packets are off.
inline void set_rtit_ctl(Configuration& configuration, std::uint64_t value) noexcept {
  configuration.rtit_ctl = value;
  configuration.rtit_ctl_known = true;
  configuration.ranges_known = configuration.ranges_known || uses_no_range(value);
  if ((value & base::bit(PT_CTL_MTC_EN)) == 0) return;
  constexpr std::uint64_t kMtcFreq = base::bit(PT_CTL_MTC_FREQ_WIDTH) - 1;
  configuration.clock.mtc_period_known = true;
  configuration.clock.mtc_period = static_cast<std::uint8_t>(value >> PT_CTL_MTC_FREQ_SHIFT & kMtcFreq);
}

// True if no PTW packet of the recording is the processor's: what is there was put in by the recorder.
[[nodiscard]] inline bool ptw_disabled(const Configuration& configuration) noexcept {
  return configuration.rtit_ctl_known && (configuration.rtit_ctl & base::bit(PT_CTL_PTW_EN)) == 0;
}

}  // namespace ptkit::trace
