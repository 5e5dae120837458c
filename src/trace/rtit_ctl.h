// Settings of a recording that follow from IA32_RTIT_CTL.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "ptkit/rtit_regs.h"
#include "trace/bundle.h"

namespace ptkit::trace {

// Sets the control register as it was programmed. MTCFreq says nothing while MTC packets are off.
inline void set_rtit_ctl(Configuration& configuration, std::uint64_t value) noexcept {
  configuration.rtit_ctl = value;
  configuration.rtit_ctl_known = true;
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
