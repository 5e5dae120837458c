#include "capture/linux/perf/config.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/addresses.h"
#include "capture/common/cpu_info.h"
#include "capture/common/errors.h"
#include "capture/common/pt_options.h"
#include "capture/common/recorded_filter.h"
#include "trace_unit/msr/registers.h"

namespace ptkit::capture {

namespace {

const std::string kPtPmu = kPerfSources + "intel_pt/";
const std::string kSysctl = "/proc/sys/kernel/";
using base::kPageBytes;
constexpr unsigned kMostCpus = 1U << 16U;

std::optional<std::uint64_t> number(std::string_view text, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::uint64_t read_number(const PerfPort& port, const std::string& path, int base, std::uint64_t otherwise) {
  const auto text = port.read(path);
  return text ? number(*text, base).value_or(otherwise) : otherwise;
}

// sysfs names of the fields of CPUID leaf 14H (arch/x86/events/intel/pt.c, pt_caps).
struct Cap {
  const char* name;
  std::uint32_t trace_unit::msr::Capabilities::*word;
  unsigned shift;
  std::uint32_t mask;
};
using Can = trace_unit::msr::Capabilities;
constexpr std::array<Cap, 16> kCaps{{
    {"cr3_filtering", &Can::leaf_14_ebx, PT_CPUID_14_EBX_CR3_FILTER, 1},
    {"psb_cyc", &Can::leaf_14_ebx, PT_CPUID_14_EBX_PSB_CYC, 1},
    {"ip_filtering", &Can::leaf_14_ebx, PT_CPUID_14_EBX_IP_FILTER, 1},
    {"mtc", &Can::leaf_14_ebx, PT_CPUID_14_EBX_MTC, 1},
    {"ptwrite", &Can::leaf_14_ebx, PT_CPUID_14_EBX_PTWRITE, 1},
    {"power_event_trace", &Can::leaf_14_ebx, PT_CPUID_14_EBX_POWER_EVENT, 1},
    {"event_trace", &Can::leaf_14_ebx, PT_CPUID_14_EBX_EVENT_TRACE, 1},
    {"tnt_disable", &Can::leaf_14_ebx, PT_CPUID_14_EBX_TNT_DISABLE, 1},
    {"topa_output", &Can::leaf_14_ecx, PT_CPUID_14_ECX_TOPA, 1},
    {"topa_multiple_entries", &Can::leaf_14_ecx, PT_CPUID_14_ECX_TOPA_MULTIPLE, 1},
    {"single_range_output", &Can::leaf_14_ecx, PT_CPUID_14_ECX_SINGLE_RANGE, 1},
    {"payloads_lip", &Can::leaf_14_ecx, PT_CPUID_14_ECX_LIP, 1},
    {"num_address_ranges", &Can::leaf_14_1_eax, 0, (1U << PT_CPUID_14_1_EAX_RANGES_WIDTH) - 1},
    {"mtc_periods", &Can::leaf_14_1_eax, PT_CPUID_14_1_EAX_MTC_SHIFT, 0xffff},
    {"cycle_thresholds", &Can::leaf_14_1_ebx, PT_CPUID_14_1_EBX_CYC_SHIFT, 0xffff},
    {"psb_periods", &Can::leaf_14_1_ebx, PT_CPUID_14_1_EBX_PSB_SHIFT, 0xffff},
}};

trace_unit::msr::Capabilities read_caps(const PerfPort& port) {
  trace_unit::msr::Capabilities can;
  can.leaf_14_ebx = can.leaf_14_ecx = can.leaf_14_1_eax = can.leaf_14_1_ebx = 0;
  for (const Cap& cap : kCaps) {
    const std::uint64_t value = read_number(port, kPtPmu + "caps/" + cap.name, 16, 0);
    can.*cap.word |= (static_cast<std::uint32_t>(value) & cap.mask) << cap.shift;
  }
  // "numerator:denominator": TSC ticks to ticks of the crystal clock (ART).
  const std::string ratio = port.read(kPtPmu + "tsc_art_ratio").value_or("");
  const std::size_t colon = std::min(ratio.find(':'), ratio.size());
  const auto above = number(ratio.substr(0, colon), 10);
  const auto below = number(ratio.substr(std::min(colon + 1, ratio.size())), 10);
  if (above && below) {
    can.tsc_ctc_numerator = static_cast<std::uint32_t>(*above);
    can.tsc_ctc_denominator = static_cast<std::uint32_t>(*below);
  }
  return can;
}

PerfError no_pt(const PerfPort& port) {
  if (!port.read(kSysctl + "perf_event_paranoid"))
    return {"this kernel has no perf events", "boot one with CONFIG_PERF_EVENTS, or use backend \"driver\""};
  const std::string cpu = port.read("/proc/cpuinfo").value_or("");
  if (cpu.find(" intel_pt") == std::string::npos) {
    return {"this processor has no Intel PT, or its hypervisor hides it",
            "use emulator, or a machine with Intel PT (Broadwell or newer)"};
  }
  return {
      "the kernel has no intel_pt event, though the processor has Intel PT",
      "boot a kernel with CONFIG_PERF_EVENTS and CONFIG_CPU_SUP_INTEL; the firmware may have locked tracing"};
}

// "config:14-17"
std::string field_bits(const trace_unit::msr::Field& field) {
  std::string text = "config:" + std::to_string(field.first);
  return field.width == 1 ? text : text + "-" + std::to_string(field.first + field.width - 1);
}

std::optional<base::Failure> check_terms(const trace_unit::msr::PerfEvent& event, const PerfPmu& pmu) {
  for (const trace_unit::msr::Field& field : trace_unit::msr::ctl_fields()) {
    if (field.perf.empty() || field.of(event.config) == 0) continue;
    const std::string term(field.perf);
    const auto found = pmu.format.find(term);
    if (found == pmu.format.end())
      return unsupported("this kernel's intel_pt has no term " + term +
                         "; boot a newer one, or leave it out");
    if (found->second != field_bits(field)) {
      return unsupported("this kernel has the term " + term + " elsewhere (" + found->second +
                         ") than this ptkit knows; take a newer ptkit");
    }
  }
  return {};
}

// The rules of the registers, including reserved fields and fields that a processor ignores.
std::optional<base::Failure> check_rules(const trace_unit::msr::RtitConfig& config, const PerfPmu& pmu) {
  trace_unit::msr::RtitConfig registers = config;
  registers.topa = true;
  registers.output_mask_ptrs = kPageBytes - 1;
  for (const trace_unit::msr::Violation& violation : trace_unit::msr::check(registers, pmu.can)) {
    if (trace_unit::msr::is_refused(violation)) return explained(violation, pmu.can);
  }
  return {};
}

trace_unit::msr::RtitConfig registers_of(const RecordOptions& options, const PerfPmu& pmu) {
  trace_unit::msr::RtitConfig out;
  out.trace_en = out.topa = out.branch_en = true;
  out.user = options.levels.user;
  out.os = options.levels.kernel;
  out.tsc_en = options.timing_packets().tsc;
  out.mtc_en = has_mtc(options, pmu.can);
  out.cyc_en = options.timing_packets().cyc;
  out.ptw_en = out.fup_on_ptw = options.packets.ptwrite;
  out.pwr_evt_en = options.packets.power;
  out.event_en = options.packets.events;
  out.dis_retc = !options.return_compression;
  if (out.mtc_en) out.mtc_freq = mtc_frequency(options, pmu.can);
  if (options.timing_packets().cyc) out.cyc_thresh = options.cyc_threshold;
  out.psb_freq = psb_frequency(options, pmu.can);
  return out;
}

}  // namespace

std::vector<std::uint32_t> read_cpus(const std::string& text) {
  std::vector<std::uint32_t> out;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t dash = part.find('-');
    const auto first = number(part.substr(0, dash), 10);
    const auto last = dash == std::string_view::npos ? first : number(part.substr(dash + 1), 10);
    if (!first || !last || *last >= kMostCpus) continue;
    for (std::uint64_t cpu = *first; cpu <= *last; ++cpu) out.push_back(static_cast<std::uint32_t>(cpu));
  }
  return out;
}

std::vector<std::uint32_t> online_cpus(const PerfPort& port) {
  return read_cpus(port.read("/sys/devices/system/cpu/online").value_or("0"));
}

std::optional<std::uint32_t> event_type(const PerfPort& port, const std::string& name) {
  const auto text = port.read(kPerfSources + name + "/type");
  const auto type = text ? number(*text, 10) : std::nullopt;
  return type ? std::optional(static_cast<std::uint32_t>(*type)) : std::nullopt;
}

std::optional<base::Failure> check_cpus(const RecordOptions& options,
                                        const std::vector<std::uint32_t>& online) {
  if (options.per_thread && options.whole_cpus())
    return unsupported("per_thread: whole processors have no threads of their own; leave one of both out");
  for (const std::uint32_t cpu : options.cpus.numbers) {
    if (std::find(online.begin(), online.end(), cpu) == online.end())
      return invalid_option("cpus: processor " + std::to_string(cpu) + " is not there, or offline");
  }
  return {};
}

std::optional<PerfPmu> find_pmu(const PerfPort& port, PerfError& error) {
  const auto type = port.read(kPtPmu + "type");
  if (!type || !number(*type, 10)) {
    error = no_pt(port);
    return {};
  }
  PerfPmu pmu;
  pmu.type = static_cast<std::uint32_t>(*number(*type, 10));
  pmu.can = read_caps(port);
  pmu.lip_known = port.read(kPtPmu + "caps/payloads_lip").has_value();
  for (const trace_unit::msr::Field& field : trace_unit::msr::ctl_fields()) {
    if (field.perf.empty()) continue;
    if (const auto bits = port.read(kPtPmu + "format/" + std::string(field.perf)))
      pmu.format[std::string(field.perf)] = *bits;
  }
  pmu.filters = static_cast<unsigned>(read_number(port, kPtPmu + "nr_addr_filters", 10, 0));
  pmu.max_nonturbo_ratio = static_cast<std::uint8_t>(read_number(port, kPtPmu + "max_nonturbo_ratio", 10, 0));
  pmu.cpus = online_cpus(port);
  return pmu;
}

base::Result<trace_unit::msr::PerfEvent> perf_event(const RecordOptions& options, const PerfPmu& pmu) {
  trace_unit::msr::PerfEvent event = trace_unit::msr::perf_of(registers_of(options, pmu)).event;
  event.user = options.levels.user;
  event.kernel = options.levels.kernel;
  if (!options.event.empty()) {
    auto parsed = trace_unit::msr::parse_perf(options.event, event);
    if (!parsed.ok()) return invalid_option("event: " + parsed.failure().detail);
    event = parsed.value();
    if (event.user != options.levels.user || event.kernel != options.levels.kernel)
      return invalid_option(
          "event: remove the modifiers after the second slash (u, k); levels chooses user and kernel code");
  }
  const auto config = trace_unit::msr::config_of_perf(event);
  if (!config.ok()) return invalid_option("event: " + config.failure().detail);
  if (auto failure = check_terms(event, pmu)) return *failure;
  if (auto failure = check_rules(config.value(), pmu)) return *failure;
  if (auto failure = check_cpus(options, pmu.cpus)) return *failure;
  return event;
}

trace::Configuration recorded_configuration(const trace_unit::msr::PerfEvent& event, const PerfPmu& pmu) {
  trace::Configuration out;
  out.cpu = this_processor();
  const auto config = trace_unit::msr::config_of_perf(event);
  if (!config.ok()) return out;
  out.rtit_ctl = trace_unit::msr::values_of(config.value()).ctl;
  out.rtit_ctl_known = true;
  if (pmu.lip_known) out.ip_payloads = ip_payloads((pmu.can.leaf_14_ecx >> PT_CPUID_14_ECX_LIP & 1U) != 0);
  out.clock.tsc_ctc_numerator = pmu.can.tsc_ctc_numerator;
  out.clock.tsc_ctc_denominator = pmu.can.tsc_ctc_denominator;
  out.clock.mtc_period = config.value().mtc_freq;
  out.clock.mtc_period_known = config.value().mtc_en;
  out.clock.max_nonturbo_ratio = pmu.max_nonturbo_ratio;
  return out;
}

perf_event_attr event_attr(const trace_unit::msr::PerfEvent& event, std::uint32_t type) noexcept {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = event.config;
  attr.sample_period = 1;
  attr.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  attr.sample_id_all = 1;
  attr.disabled = 1;
  attr.exclude_user = event.user ? 0 : 1;
  attr.exclude_kernel = event.kernel ? 0 : 1;
  attr.exclude_hv = 1;
  return attr;
}

namespace {

// 0, or the errno.
int try_open(PerfPort& port, perf_event_attr attr, int tid, int cpu, bool kernel) {
  attr.exclude_user = 0;
  attr.exclude_kernel = kernel ? 0 : 1;
  const int event = port.open(attr, tid, cpu);
  if (event >= 0) port.close(event);
  return event < 0 ? -event : 0;
}

// One CPU that works is enough: others may be busy or offline.
int try_whole_cpus(PerfPort& port, const EventOn& on) {
  int error = ENODEV;
  for (const std::uint32_t cpu : online_cpus(port)) {
    error = try_open(port, on(static_cast<int>(cpu)), -1, static_cast<int>(cpu), true);
    if (error == 0 || error == EACCES || error == EPERM) break;
  }
  return error;
}

}  // namespace

PerfSupport try_event(PerfPort& port, const EventOn& on, const PerfScope& scope) {
  if (const int error = try_open(port, on(-1), 0, -1, false); error != 0)
    return {open_error(port, scope, error), {}};
  const bool kernel = try_open(port, on(-1), 0, -1, true) == 0;
  const int whole = try_whole_cpus(port, on);
  if (whole == 0 && kernel) return {{}, "the kernel and whole processors, too"};
  std::string own = kernel ? "user and kernel code of own processes only" : "user code of own processes only";
  if (whole == 0 || whole == EACCES || whole == EPERM) return {{}, std::move(own)};
  PerfScope all = scope;
  all.whole_cpus = true;
  return {{}, std::move(own) + " (whole processors: " + open_error(port, all, whole).what + ")"};
}

PerfSupport pt_support(PerfPort& port) {
  PerfSupport support;
  const auto pmu = find_pmu(port, support.error);
  if (!pmu) return support;
  support = try_event(port, [&](int) { return event_attr({}, pmu->type); }, {});
  if (!support.error.what.empty()) return support;
  const std::array<std::pair<unsigned, const char*>, 6> words{{
      {PT_CPUID_14_EBX_MTC, "MTC packets"},
      {PT_CPUID_14_EBX_PSB_CYC, "CYC packets"},
      {PT_CPUID_14_EBX_PTWRITE, "PTWRITE"},
      {PT_CPUID_14_EBX_POWER_EVENT, "power events"},
      {PT_CPUID_14_EBX_EVENT_TRACE, "event trace"},
      {PT_CPUID_14_EBX_TNT_DISABLE, "TNT packets can be left out"},
  }};
  std::string can = std::to_string(pmu->filters) + " address filters";
  for (const auto& [bit, word] : words) {
    if (pmu->can.ebx(bit)) can += std::string(", ") + word;
  }
  support.abilities = can + "; " + support.abilities;
  return support;
}

}  // namespace ptkit::capture
