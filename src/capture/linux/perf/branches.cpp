#include "capture/linux/perf/branches.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "capture/common/errors.h"
#include "capture/common/pt_options.h"

namespace ptkit::capture {

namespace {

constexpr const char* kBtsPmu = "intel_bts";
constexpr std::array<const char*, 3> kCores{"cpu_core", "cpu_atom", "cpu_lowpower"};
constexpr unsigned kTypeShift = 32;  // PERF_PMU_TYPE_SHIFT: the PMU's type in the config of a generic event
constexpr const char* kSampleRate = "/proc/sys/kernel/perf_event_max_sample_rate";
constexpr std::uint64_t kFrequency = 4000;  // the default of perf record
constexpr std::uint64_t kMostFrequency = 1'000'000;

using BranchType = std::pair<const char*, std::uint64_t>;
constexpr std::array<BranchType, 10> kBranchTypes{{{"any", PERF_SAMPLE_BRANCH_ANY},
                                                   {"any_call", PERF_SAMPLE_BRANCH_ANY_CALL},
                                                   {"any_ret", PERF_SAMPLE_BRANCH_ANY_RETURN},
                                                   {"ind_call", PERF_SAMPLE_BRANCH_IND_CALL},
                                                   {"ind_jmp", PERF_SAMPLE_BRANCH_IND_JUMP},
                                                   {"call", PERF_SAMPLE_BRANCH_CALL},
                                                   {"cond", PERF_SAMPLE_BRANCH_COND},
                                                   {"in_tx", PERF_SAMPLE_BRANCH_IN_TX},
                                                   {"no_tx", PERF_SAMPLE_BRANCH_NO_TX},
                                                   {"abort_tx", PERF_SAMPLE_BRANCH_ABORT_TX}}};

base::Failure unknown_kind(const std::string& name) {
  std::string all;
  for (const BranchType& kind : kBranchTypes) all += (all.empty() ? "" : ", ") + std::string(kind.first);
  return invalid_option("branch_stack: expected any of " + all + ", found '" + name + "'");
}

base::Result<std::uint64_t> kinds_of(const std::string& text) {
  std::uint64_t mask = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string name = text.substr(at, end - at);
    const auto* const kind = std::find_if(kBranchTypes.begin(), kBranchTypes.end(),
                                          [&](const BranchType& one) { return name == one.first; });
    if (kind == kBranchTypes.end()) return unknown_kind(name);
    mask |= kind->second;
    at = end + 1;
  }
  return mask;
}

// kernel.perf_event_max_sample_rate, which the kernel lowers if samples take too long.
std::uint64_t allowed_frequency(const PerfPort& port) {
  const std::string text = port.read(kSampleRate).value_or("");
  const std::uint64_t most = std::strtoull(text.c_str(), nullptr, 10);
  return most != 0 ? most : kMostFrequency;
}

bool in_virtual_machine(const PerfPort& port) {
  return port.read("/proc/cpuinfo").value_or("").find(" hypervisor") != std::string::npos;
}

PerfError no_lbr(const PerfPort& port) {
  if (in_virtual_machine(port)) {
    return {"branch stacks (LBR) are not there: this is a virtual machine, and its hypervisor hides them",
            "give the guest a virtual PMU with LBR, or record on the host"};
  }
  return {"this processor has no branch stacks (LBR) that Linux knows (caps/branches)",
          "record packets or bts, or use a newer kernel or processor"};
}

// Entries of the branch stack (LBR), from sysfs (caps/branches); 0: an older kernel does not report them.
std::uint64_t stack_entries(const PerfPort& port) {
  for (const char* unit : {"cpu", "cpu_core"}) {
    const auto text = port.read(kPerfSources + std::string(unit) + "/caps/branches");
    if (text) return std::strtoull(text->c_str(), nullptr, 10);
  }
  return 0;
}

PerfError no_bts(const PerfPort& port) {
  if (!port.read("/proc/sys/kernel/perf_event_paranoid"))
    return {"this kernel has no perf events", "boot one with CONFIG_PERF_EVENTS"};
  const std::string cpu = port.read("/proc/cpuinfo").value_or("");
  if (cpu.find(" bts") == std::string::npos || cpu.find(" dtes64") == std::string::npos) {
    return {"this processor has no Branch Trace Store (CPUID: DS, DTES64), or its hypervisor hides it",
            "record packets or a branch stack, or use a machine that has it"};
  }
  const std::string meltdown = port.read("/sys/devices/system/cpu/vulnerabilities/meltdown").value_or("");
  if (meltdown.find("PTI") != std::string::npos) {
    return {"Linux has no intel_bts while it isolates page tables (meltdown: " + meltdown + ")",
            "boot with pti=off where that is acceptable, or record packets (intel_pt)"};
  }
  return {"the kernel has no intel_bts event, though the processor has Branch Trace Store",
          "boot Linux 4.1 or newer with CONFIG_PERF_EVENTS and CONFIG_CPU_SUP_INTEL"};
}

base::Result<perf_event_attr> lbr_event(const RecordOptions& options, const PerfPort& port) {
  if (options.ring != 0)
    return base::Failure{base::Status::UNSUPPORTED, 0,
                         "ring: branch stacks are samples, and all of them are kept; leave it out"};
  if (options.sample_period != 0 && options.sample_frequency != 0)
    return invalid_option("sample_period, sample_frequency: expected one of both");
  const auto kinds = kinds_of(options.branch_stack);
  if (!kinds.ok()) return kinds.failure();
  const trace_unit::msr::PerfEvent cycles{PERF_COUNT_HW_CPU_CYCLES, options.levels.user,
                                          options.levels.kernel};
  perf_event_attr attr = event_attr(cycles, PERF_TYPE_HARDWARE);
  attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
  attr.branch_sample_type = kinds.value();
  attr.sample_period = options.sample_period;
  if (options.sample_period != 0) return attr;
  attr.freq = 1;
  attr.sample_freq = options.sample_frequency != 0 ? options.sample_frequency
                                                   : std::min(kFrequency, allowed_frequency(port));
  return attr;
}

PerfError busy(Recorded recorded) {
  const char* what = recorded == Recorded::BTS ? "Branch Trace Store is in use, or excluded by"
                                               : "branch stacks (LBR) are excluded by";
  const char* others = recorded == Recorded::BTS
                           ? "events with LBR, intel_pt, or the event branches with period 1"
                           : "intel_bts or intel_pt";
  return {std::string(what) + " what else is recorded (" + others + ")",
          "end other recordings first: a processor does one of these at a time"};
}

}  // namespace

base::Result<perf_event_attr> branch_event(const RecordOptions& options, const PerfPort& port) {
  if (auto failure = check_branches(options)) return *failure;
  if (options.recorded() == Recorded::LBR) return lbr_event(options, port);
  const auto type = event_type(port, kBtsPmu);
  if (!type) return no_bts(port).failure();
  return event_attr({0, options.levels.user, options.levels.kernel}, *type);
}

std::vector<CoreKind> core_kinds(const PerfPort& port) {
  std::vector<CoreKind> out;
  for (const char* name : kCores) {
    const auto type = event_type(port, name);
    const auto cpus = port.read(kPerfSources + name + "/cpus");
    if (type && cpus) out.push_back({*type, read_cpus(*cpus)});
  }
  return out;
}

std::vector<perf_event_attr> events_on(const perf_event_attr& attr, const std::vector<CoreKind>& kinds,
                                       int cpu) {
  std::vector<perf_event_attr> out;
  for (const CoreKind& kind : kinds) {
    const bool here = cpu < 0 || std::find(kind.cpus.begin(), kind.cpus.end(),
                                           static_cast<std::uint32_t>(cpu)) != kind.cpus.end();
    if (!here) continue;
    out.push_back(attr);
    out.back().config |= std::uint64_t{kind.type} << kTypeShift;
  }
  if (out.empty()) out.push_back(attr);
  return out;
}

std::optional<PerfError> branch_error(const PerfPort& port, const PerfScope& scope, int error) {
  if (scope.recorded == Recorded::PACKETS) return {};
  if (error == EBUSY) return busy(scope.recorded);
  const bool absent = error == ENOENT || error == EOPNOTSUPP || error == ENODEV;
  if (scope.recorded == Recorded::BTS) {
    if (!absent && error != EINVAL) return {};
    return PerfError{"the kernel's intel_bts cannot do this",
                     "another event may hold the processor's debug store; see the log of the kernel"};
  }
  if (absent) return no_lbr(port);
  if (error != EINVAL) return {};
  return PerfError{"branch_stack, sample_period, sample_frequency: the kernel refuses these settings",
                   "take kinds that this processor can choose, and a frequency of at most " +
                       std::to_string(allowed_frequency(port)) + " (kernel.perf_event_max_sample_rate)"};
}

PerfSupport bts_support(PerfPort& port) {
  const auto type = event_type(port, kBtsPmu);
  if (!type) return {no_bts(port), {}};
  return try_event(port, [&](int) { return event_attr({}, *type); }, {.recorded = Recorded::BTS});
}

PerfSupport lbr_support(PerfPort& port) {
  RecordOptions options;
  options.branch_stack = "any";
  const auto attr = lbr_event(options, port);
  if (!attr.ok()) return {{attr.failure().detail, "see `ptkit record --help`"}, {}};
  const std::vector<CoreKind> kinds = core_kinds(port);
  const auto on = [&](int cpu) { return events_on(attr.value(), kinds, cpu).front(); };
  PerfSupport support = try_event(port, on, {.recorded = Recorded::LBR});
  const std::uint64_t entries = stack_entries(port);
  if (support.error.what.empty() && entries != 0)
    support.abilities = std::to_string(entries) + " branches a sample; " + support.abilities;
  return support;
}

}  // namespace ptkit::capture
