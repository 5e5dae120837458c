// Configuration of a recording by perf: the intel_pt event, AUXTRACE_INFO, the processor
// (tools/perf/util/intel-pt.{h,c}, arch/x86/util/intel-pt.c). For .cpp files of this folder only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/perf_data/file.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// The PMU's name, and its capability that says whether IP payloads are linear addresses.
inline constexpr const char* kPtPmu = "intel_pt";
inline constexpr const char* kLipCap = "payloads_lip";

// AUXTRACE_INFO's type.
enum class TraceKind : std::uint32_t { NONE = 0, INTEL_PT = 1, INTEL_BTS = 2 };

// AUXTRACE_INFO. Older files have fewer fields: absent fields are 0.
struct TraceInfo {
  TraceKind kind = TraceKind::NONE;
  std::uint32_t pmu_type = 0;
  bool snapshots = false;
  bool time_known = false;
  std::uint16_t time_shift = 0;
  std::uint32_t time_mult = 0;
  std::uint64_t time_zero = 0;
  std::uint64_t time_cycles = 0;  // cap_user_time_short: the counter wraps
  std::uint64_t time_mask = 0;
  // Processor Trace only:
  std::uint64_t mtc_freq_bits = 0;  // mask of MTCFreq in the event's config
  std::uint32_t tsc_ctc_numerator = 0;
  std::uint32_t tsc_ctc_denominator = 0;
  std::uint8_t max_nonturbo_ratio = 0;
  bool filter_known = false;  // perf before 4.10 does not write it
  std::string filter;         // --filter; empty: no address ranges
};

[[nodiscard]] std::optional<TraceInfo> parse_info(base::Bytes body);
// Completes AUXTRACE_INFO by fields of a TIME_CONV record that came before it.
void keep_time_conversion(const TraceInfo& before, TraceInfo& info);
// Reads TIME_CONV: the clock of recordings without AUXTRACE_INFO, and whether its counter wraps. False: the
// record is cut, or has no time_zero.
[[nodiscard]] bool take_time_conversion(base::Bytes body, TraceInfo& out);
// Parses "GenuineIntel,6,142,10". False: the text has another form.
[[nodiscard]] bool parse_cpuid(const std::string& text, trace::Cpu& cpu);
// Reads the kind of IP payloads from PMU_CAPS: intel_pt's `payloads_lip` (CPUID.14H.0:ECX[31]).
[[nodiscard]] trace::IpPayloads ip_payloads_of(base::Bytes pmu_caps);
// Reads the number of last branch records from CPU_PMU_CAPS (`branches`). 0: not known.
[[nodiscard]] std::size_t lbr_depth_of(base::Bytes cpu_pmu_caps);
// Returns true if an intel_pt or intel_bts event traces kernel code.
[[nodiscard]] bool traces_kernel(const TraceInfo& info, const std::vector<Attr>& attrs);
void configure(const TraceInfo& info, const std::vector<Attr>& attrs, trace::Configuration& out);

}  // namespace ptkit::formats::perf
