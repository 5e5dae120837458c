// How a recording by perf was configured: the intel_pt event, AUXTRACE_INFO, the processor
// (tools/perf/util/intel-pt.{h,c}, arch/x86/util/intel-pt.c). For .cpp files of this folder only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/perf_file.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// As perf names the trace unit, and what tells whether its IP payloads are linear addresses.
inline constexpr const char* kPtPmu = "intel_pt";
inline constexpr const char* kLipCap = "payloads_lip";

// Of which kind a trace is: AUXTRACE_INFO's type.
enum class TraceKind : std::uint32_t { NONE = 0, INTEL_PT = 1, INTEL_BTS = 2 };

// AUXTRACE_INFO. Older files have fewer fields: what is absent is 0.
struct TraceInfo {
  TraceKind kind = TraceKind::NONE;
  std::uint32_t pmu_type = 0;
  bool snapshots = false;
  bool time_known = false;
  std::uint16_t time_shift = 0;
  std::uint32_t time_mult = 0;
  std::uint64_t time_zero = 0;
  std::uint64_t time_cycles = 0;  // of a counter that wraps
  std::uint64_t time_mask = 0;
  // Of Processor Trace alone:
  std::uint64_t mtc_freq_bits = 0;  // where MTCFreq lies in the event's config
  std::uint32_t tsc_ctc_numerator = 0;
  std::uint32_t tsc_ctc_denominator = 0;
  std::uint8_t max_nonturbo_ratio = 0;
  std::string filter;
};

[[nodiscard]] std::optional<TraceInfo> parse_info(base::Bytes body);
// What TIME_CONV told before AUXTRACE_INFO, where that does not tell it.
void keep_time_conversion(const TraceInfo& before, TraceInfo& info);
// TIME_CONV: the clock of recordings that have no AUXTRACE_INFO, and whether its counter wraps. False: it is
// cut, or has no time_zero.
[[nodiscard]] bool take_time_conversion(base::Bytes body, TraceInfo& out);
// "GenuineIntel,6,142,10"; false if it is not of that form.
[[nodiscard]] bool parse_cpuid(const std::string& text, trace::Cpu& cpu);
// What IP payloads are, as PMU_CAPS tells of the unit: intel_pt's `payloads_lip` (CPUID.14H.0:ECX[31]).
[[nodiscard]] trace::IpPayloads ip_payloads_of(base::Bytes pmu_caps);
// Whether what was traced has code of the kernel, too.
[[nodiscard]] bool traces_kernel(const TraceInfo& info, const std::vector<Attr>& attrs);
void configure(const TraceInfo& info, const std::vector<Attr>& attrs, trace::Configuration& out);

}  // namespace ptkit::formats::perf
