#include "capture/linux/process/pt_config.h"

#include <sys/utsname.h>

#include <bit>
#include <ctime>

#include "capture/common/cpu_info.h"
#include "trace_unit/msr/config.h"

namespace ptkit::capture {

namespace {

// The crystal clock of the recorded processor: TSC / 480, about 5 MHz. The fast counter of TMA counts to 511
// at most.
constexpr std::uint32_t kTscPerCtc = 480;
constexpr std::uint8_t kRatio =
    30;  // core:bus ratio (CBR). It is the maximum non-turbo ratio: cycles are TSC ticks

std::uint64_t rtit_ctl(const RecordOptions& options) {
  trace_unit::msr::RtitConfig config;
  config.trace_en = config.user = config.branch_en = true;
  config.cyc_en = options.timing_packets().cyc;
  config.mtc_en = options.timing_packets().mtc;
  config.tsc_en = options.timing_packets().tsc;
  config.dis_retc = !options.return_compression;
  config.mtc_freq = options.mtc_freq();
  config.cyc_thresh = options.cyc_threshold;
  config.psb_freq = static_cast<std::uint8_t>(std::countr_zero(options.psb_period) - 11);  // 2048 << PSBFreq
  return trace_unit::msr::values_of(config).ctl;
}

}  // namespace

trace_unit::generator::GeneratorConfig generator_config(const RecordOptions& options) {
  trace_unit::generator::GeneratorConfig config;
  config.return_compression = options.return_compression;
  config.tip_ret =
      trace_unit::generator::TipRet::CLEARS;  // all decoders agree on it; docs/packet-generation.md
  config.tsc = options.timing_packets().tsc;
  config.mtc = options.timing_packets().mtc;
  config.cyc = options.timing_packets().cyc;
  config.use_tnt_64 = options.tnt_64;
  config.mtc_period = options.mtc_freq();
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
  configuration.ip_payloads = trace::IpPayloads::LINEAR;  // recorders in software know linear addresses
  trace::Clock& clock = configuration.clock;
  clock.tsc_ctc_numerator = kTscPerCtc;
  clock.tsc_ctc_denominator = 1;
  clock.mtc_period = options.mtc_freq();
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
