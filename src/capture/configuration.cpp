#include "capture/configuration.h"

#include <sys/utsname.h>

#include <bit>
#include <ctime>

#include "capture/processor.h"
#include "ptkit/rtit_regs.h"

namespace ptkit::capture {

namespace {

// The crystal clock of the recorded processor: TSC / 480, about 5 MHz. The fast counter of TMA counts to 511
// at most.
constexpr std::uint32_t kTscPerCtc = 480;
constexpr std::uint8_t kRatio = 30;  // CBR, and the ratio at which cycles are TSC ticks

constexpr std::uint64_t bit(unsigned position) { return std::uint64_t{1} << position; }

std::uint64_t rtit_ctl(const RecordOptions& options) {
  std::uint64_t value = bit(PT_CTL_TRACE_EN) | bit(PT_CTL_USER) | bit(PT_CTL_BRANCH_EN);
  if (options.cyc) value |= bit(PT_CTL_CYC_EN);
  if (options.mtc) value |= bit(PT_CTL_MTC_EN);
  if (options.tsc) value |= bit(PT_CTL_TSC_EN);
  if (!options.return_compression) value |= bit(PT_CTL_DIS_RETC);
  value |= std::uint64_t{options.mtc_period} << PT_CTL_MTC_FREQ_SHIFT;
  value |= std::uint64_t{options.cyc_threshold} << PT_CTL_CYC_THRESH_SHIFT;
  const auto period =
      static_cast<std::uint64_t>(std::countr_zero(options.psb_period) - 11);  // 2048 << PSBFreq
  return value | period << PT_CTL_PSB_FREQ_SHIFT;
}

}  // namespace

softpt::UnitConfig unit_config(const RecordOptions& options) {
  softpt::UnitConfig config;
  config.return_compression = options.return_compression;
  config.uncompressed_ret_pops = false;  // as libipt and perf read it; docs/packet-generation.md
  config.tsc = options.tsc;
  config.mtc = options.mtc;
  config.cyc = options.cyc;
  config.use_tnt_64 = options.tnt_64;
  config.mtc_period = options.mtc_period;
  config.cyc_threshold = options.cyc_threshold;
  config.psb_bytes = options.psb_period;
  config.tsc_ctc_numerator = kTscPerCtc;
  config.tsc_ctc_denominator = 1;
  config.core_bus_ratio = kRatio;
  config.max_nonturbo_ratio = kRatio;
  return config;
}

trace::Configuration configuration(const RecordOptions& options, const TscCalibration& calibration) {
  trace::Configuration configuration;
  configuration.cpu = this_processor();
  configuration.rtit_ctl = rtit_ctl(options);
  configuration.rtit_ctl_known = true;
  trace::Clock& clock = configuration.clock;
  clock.tsc_ctc_numerator = kTscPerCtc;
  clock.tsc_ctc_denominator = 1;
  clock.mtc_period = options.mtc_period;
  clock.mtc_period_known = true;
  clock.max_nonturbo_ratio = kRatio;
  calibration.calibrate(clock);
  return configuration;
}

std::int64_t real_time_ns() {
  timespec now{};
  static_cast<void>(::clock_gettime(CLOCK_REALTIME, &now));
  return std::int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

std::string machine() {
  utsname name{};
  if (::uname(&name) != 0) return {};
  return std::string(name.sysname) + " " + name.release + " " + name.machine + ", " + processor_name();
}

}  // namespace ptkit::capture
