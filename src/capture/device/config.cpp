#include "capture/device/config.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "base/addresses.h"
#include "capture/common/cpu_info.h"
#include "capture/common/errors.h"
#include "capture/common/pt_options.h"
#include "capture/common/recorded_filter.h"
#include "ptkit/rtit_regs.h"
#include "trace/warning_codes.h"
#include "trace_unit/msr/config.h"

namespace ptkit::capture {

using trace::WarningCode;

namespace {

using base::kPageBytes;
constexpr std::uint64_t kBufferBytes = std::uint64_t{4} << 20U;
constexpr std::uint64_t kSidebandBytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t kThreadSidebandBytes = std::uint64_t{64} << 10U;  // per_thread
// Kernel code of the interrupt at the threshold is stored, too, until its handler ends that.
constexpr std::uint64_t kLeastStoreBytes = std::uint64_t{64} << 10U;
constexpr std::uint32_t kBusKhz = 100000;  // bus clock that ratios multiply, since Sandy Bridge

// The measured frequency is often a little below the nominal one. An older driver returns no ratio.
std::uint32_t nominal_ratio(const ptkit_query& query) {
  return query.nominal_ratio != 0 ? query.nominal_ratio : (query.tsc_khz + kBusKhz / 2) / kBusKhz;
}

bool has(const ptkit_query& query, std::uint64_t feature) { return (query.features & feature) != 0; }

bool follows_children(const RecordOptions& options) {
  return options.children && !options.whole_cpus() && !options.per_thread;
}

std::uint64_t flags_of(const RecordOptions& options, const ptkit_query& query) {
  const bool packets = options.recorded() == Recorded::PACKETS;
  const std::array<std::pair<bool, std::uint64_t>, 11> all{{
      {options.levels.user, PTKIT_TRACE_USER},
      {options.levels.kernel, PTKIT_TRACE_KERNEL},
      {true, PTKIT_TRACE_BRANCHES},
      {packets && options.timing_packets().tsc, PTKIT_TRACE_TSC},
      {packets && has_mtc(options, capabilities_of(query)), PTKIT_TRACE_MTC},
      {packets && options.timing_packets().cyc, PTKIT_TRACE_CYC},
      {options.packets.ptwrite, PTKIT_TRACE_PTWRITE | PTKIT_TRACE_PTWRITE_FUP},
      {options.packets.power, PTKIT_TRACE_POWER},
      {options.packets.events, PTKIT_TRACE_EVENTS},
      {!options.return_compression, PTKIT_TRACE_NO_RETC},
      {follows_children(options) && has(query, PTKIT_FEATURE_CHILDREN), PTKIT_TRACE_CHILDREN},
  }};
  std::uint64_t flags = 0;
  for (const auto& [wanted, flag] : all) flags |= wanted ? flag : 0;
  return flags;
}

trace_unit::msr::RtitConfig registers_of(const ptkit_config& config) {
  const auto on = [&](std::uint64_t flag) { return (config.flags & flag) != 0; };
  trace_unit::msr::RtitConfig out;
  out.trace_en = true;
  out.user = on(PTKIT_TRACE_USER);
  out.os = on(PTKIT_TRACE_KERNEL);
  out.branch_en = on(PTKIT_TRACE_BRANCHES);
  out.tsc_en = on(PTKIT_TRACE_TSC);
  out.mtc_en = on(PTKIT_TRACE_MTC);
  out.cyc_en = on(PTKIT_TRACE_CYC);
  out.ptw_en = on(PTKIT_TRACE_PTWRITE);
  out.fup_on_ptw = on(PTKIT_TRACE_PTWRITE_FUP);
  out.pwr_evt_en = on(PTKIT_TRACE_POWER);
  out.event_en = on(PTKIT_TRACE_EVENTS);
  out.dis_retc = on(PTKIT_TRACE_NO_RETC);
  out.mtc_freq = config.mtc_freq;
  out.cyc_thresh = config.cyc_thresh;
  out.psb_freq = config.psb_freq;
  out.topa = config.output == PTKIT_OUTPUT_TOPA;
  return out;
}

// Output addresses are set by the driver.
std::optional<base::Failure> check_registers(const ptkit_config& config, const ptkit_query& query) {
  const trace_unit::msr::Capabilities can = capabilities_of(query);
  trace_unit::msr::RtitConfig registers = registers_of(config);
  registers.output_mask_ptrs = kPageBytes - 1;
  for (const trace_unit::msr::Violation& violation : trace_unit::msr::check(registers, can)) {
    if (trace_unit::msr::is_refused(violation)) return explained(violation, can);
  }
  return {};
}

std::optional<base::Failure> check_per_thread(const RecordOptions& options, const ptkit_query& query) {
  if (options.whole_cpus())
    return unsupported("per_thread: whole processors have no threads of their own; leave one of both out");
  if (!has(query, PTKIT_FEATURE_TASK)) {
    return unsupported(
        "per_thread: this kernel has no tracepoints of the scheduler, by which the driver follows a thread; "
        "record whole processors (cpus=\"all\", -a)");
  }
  return {};
}

// Branch Trace Store.
std::optional<base::Failure> check_store(const RecordOptions& options, const ptkit_query& query) {
  if (auto failure = check_branches(options)) return failure;
  if (options.per_thread) {
    return unsupported(
        "per_thread: the driver stores branches of processors, with their threads; leave it out");
  }
  if (has(query, PTKIT_FEATURE_BTS)) return {};
  return unsupported(
      "bts: there is no Branch Trace Store on this system: the processor lacks it, or the kernel isolates "
      "page tables; boot with pti=off where that is acceptable, or record packets");
}

std::optional<base::Failure> check_scope(const RecordOptions& options, const ptkit_query& query,
                                         std::vector<trace::Warning>& warnings) {
  if (options.recorded() == Recorded::BTS) {
    if (auto failure = check_store(options, query)) return failure;
  }
  for (const std::uint32_t cpu : options.cpus.numbers) {
    if (cpu >= query.cpus)
      return invalid_option("cpus: expected numbers below " + std::to_string(query.cpus) + ", found " +
                            std::to_string(cpu));
  }
  if (options.per_thread) return check_per_thread(options, query);
  if (options.whole_cpus()) return {};
  if (!has(query, PTKIT_FEATURE_PROCESS)) {
    return unsupported(
        "pid: this processor cannot trace one process alone; record whole processors (cpus=\"all\", -a)");
  }
  if (options.levels.user && options.levels.kernel && !has(query, PTKIT_FEATURE_PROCESS_BOTH)) {
    return unsupported(
        "levels: user and kernel code of one process at once is not possible on this system, where the "
        "kernel isolates page tables; record one of both, or whole processors (cpus=\"all\", -a)");
  }
  if (follows_children(options) && !has(query, PTKIT_FEATURE_CHILDREN))
    warnings.push_back(warn(WarningCode::CHILDREN_UNSUPPORTED));
  return {};
}

std::uint64_t up_to_pages(std::uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

// Errata limit single ranges of some processors to one page. 0: a driver that does not know of them.
bool exceeds_errata(std::uint64_t bytes, const ptkit_query& query) {
  return query.most_single_bytes != 0 && bytes > query.most_single_bytes && has(query, PTKIT_FEATURE_TOPA);
}

std::optional<base::Failure> set_output(const RecordOptions& options, const ptkit_query& query,
                                        std::vector<trace::Warning>& warnings, ptkit_config& config) {
  const bool ring = options.ring != 0;
  const bool store = options.recorded() == Recorded::BTS;
  config.mode = ring ? PTKIT_MODE_RING : PTKIT_MODE_FULL;
  config.output = options.single_range ? PTKIT_OUTPUT_SINGLE_RANGE : PTKIT_OUTPUT_TOPA;
  if (store) config.output = PTKIT_OUTPUT_BTS;
  if (options.single_range && !ring)
    return invalid_option("single_range: a contiguous buffer is always a ring; give its size (ring)");
  if (!store && !has(query, options.single_range ? PTKIT_FEATURE_SINGLE_RANGE : PTKIT_FEATURE_TOPA)) {
    return unsupported(options.single_range
                           ? "single_range: this processor needs ToPA output; leave it out"
                           : "this processor has no ToPA output; use single_range, and a ring");
  }
  const std::uint64_t asked = ring ? options.ring : options.buffer;
  std::uint64_t bytes = up_to_pages(asked != 0 ? asked : kBufferBytes);
  if (options.single_range) bytes = std::bit_ceil(bytes);
  if (store) bytes = std::max(bytes, kLeastStoreBytes);
  if (options.single_range && exceeds_errata(bytes, query)) {
    config.output = PTKIT_OUTPUT_TOPA;
    warnings.push_back(warn(WarningCode::SINGLE_RANGE_ERRATUM));
  }
  if (bytes > query.most_bytes) {
    return invalid_option((ring ? "ring: " : "buffer: ") + std::to_string(bytes) +
                          " bytes for each processor are more than the driver gives; it gives " +
                          std::to_string(query.most_bytes));
  }
  config.buffer_bytes = bytes;
  if (!ring && (store || has(query, PTKIT_FEATURE_WAKE_UP)) && bytes >= 4 * kPageBytes)
    config.wake_up_bytes = std::bit_floor(bytes / 4);
  return {};
}

std::optional<base::Failure> set_packets(const RecordOptions& options, const ptkit_query& query,
                                         ptkit_config& config) {
  if ((config.flags & PTKIT_TRACE_MTC) != 0) config.mtc_freq = mtc_frequency(options, capabilities_of(query));
  if (options.timing_packets().cyc) config.cyc_thresh = options.cyc_threshold;
  config.psb_freq = psb_frequency(options, capabilities_of(query));
  return check_registers(config, query);
}

void describe_packets(const ptkit_config& config, const ptkit_query& query, trace::Configuration& out) {
  out.rtit_ctl = trace_unit::msr::values_of(registers_of(config)).ctl;
  out.rtit_ctl_known = true;
  out.ip_payloads = ip_payloads((query.cpuid_14_0[2] >> PT_CPUID_14_ECX_LIP & 1U) != 0);
  std::vector<trace::AddressRange> ranges;
  for (const ptkit_range& range : std::span(config.ranges).first(config.range_count))
    ranges.push_back({static_cast<trace::RangeKind>(range.action), range.first, range.last});
  set_ranges(ranges, out);
}

}  // namespace

trace_unit::msr::Capabilities capabilities_of(const ptkit_query& query) noexcept {
  trace_unit::msr::Capabilities can;
  can.leaf_14_ebx = query.cpuid_14_0[1];
  can.leaf_14_ecx = query.cpuid_14_0[2];
  can.leaf_14_1_eax = query.cpuid_14_1[0];
  can.leaf_14_1_ebx = query.cpuid_14_1[1];
  can.physical_bits = static_cast<std::uint8_t>(query.physical_bits);
  can.tsc_ctc_denominator = query.cpuid_15[0];
  can.tsc_ctc_numerator = query.cpuid_15[1];
  can.crystal_hz = query.cpuid_15[2];
  return can;
}

base::Result<ptkit_config> driver_config(const RecordOptions& options, const ptkit_query& query,
                                         std::vector<trace::Warning>& warnings) {
  ptkit_config config{};
  if (auto failure = check_scope(options, query, warnings)) return *failure;
  if (auto failure = set_output(options, query, warnings, config)) return *failure;
  config.flags = flags_of(options, query);
  if (config.output != PTKIT_OUTPUT_BTS) {
    if (auto failure = set_packets(options, query, config)) return *failure;
  }
  if (has(query, PTKIT_FEATURE_SIDEBAND)) {
    const std::uint64_t asked = options.sideband_bytes;
    const std::uint64_t usual = options.per_thread ? kThreadSidebandBytes : kSidebandBytes;
    config.sideband_bytes = std::bit_ceil(std::max(asked != 0 ? asked : usual, kPageBytes));
  } else {
    warnings.push_back(warn(WarningCode::SIDEBAND_UNSUPPORTED));
  }
  return config;
}

base::Failure config_error(int error, const ptkit_config& config) {
  struct Field {
    std::size_t offset;
    const char* words;
  };
#define FIELD(name, words) \
  { offsetof(ptkit_config, name), words }
  static constexpr std::array<Field, 14> kFields{{
      FIELD(target, "what is traced (pid, cpus)"),
      FIELD(cpu, "cpus"),
      FIELD(task, "per_thread"),
      FIELD(process, "pid"),
      FIELD(output, "single_range"),
      FIELD(mode, "ring"),
      FIELD(buffer_bytes, "buffer, ring"),
      FIELD(sideband_bytes, "the ring for sideband"),
      FIELD(wake_up_bytes, "buffer"),
      FIELD(flags, "levels, timing, packets"),
      FIELD(mtc_freq, "mtc_period"),
      FIELD(cyc_thresh, "cyc_threshold"),
      FIELD(psb_freq, "psb_period"),
      FIELD(range_count, "filters"),
  }};
#undef FIELD
  if (error == EINVAL || error == EOPNOTSUPP) {
    std::string field = config.refused >= offsetof(ptkit_config, ranges) ? "filters" : "this configuration";
    for (const Field& one : kFields) {
      if (one.offset == config.refused) field = one.words;
    }
    return unsupported(field + ": the driver refuses this value (" + std::strerror(error) + ")");
  }
  if (error == ENOMEM) {
    return unsupported(
        "buffer: the kernel has not enough memory, or RLIMIT_MEMLOCK (ulimit -l) is too low; use smaller "
        "sizes "
        "(buffer, ring), or take the capability CAP_IPC_LOCK, too");
  }
  if (error == E2BIG)
    return unsupported(
        "the loaded driver does not support these options, as it is older than this ptkit; load the driver "
        "of this version");
  if (error == ESRCH) return invalid_option("pid: there is no such process, or it is one of the kernel's");
  return unsupported(std::string("the driver does not take the configuration: ") + std::strerror(error));
}

trace::Configuration recorded_configuration(const ptkit_config& config, const ptkit_query& query) {
  trace::Configuration out;
  out.cpu = processor_of(query.cpuid_1_eax);
  if (config.output != PTKIT_OUTPUT_BTS) describe_packets(config, query, out);
  trace::Clock& clock = out.clock;
  clock.tsc_ctc_denominator = query.cpuid_15[0];
  clock.tsc_ctc_numerator = query.cpuid_15[1];
  clock.mtc_period = config.mtc_freq;
  clock.mtc_period_known = (config.flags & PTKIT_TRACE_MTC) != 0;
  clock.max_nonturbo_ratio = static_cast<std::uint8_t>(std::min(nominal_ratio(query), 255U));
  clock.tsc_hz = std::uint64_t{query.tsc_khz} * 1000;
  return out;
}

}  // namespace ptkit::capture
