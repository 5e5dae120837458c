#include "formats/perf_data/attrs.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/bits.h"
#include "ptkit/rtit_regs.h"

namespace ptkit::formats::perf {

namespace {

using base::bit;

// The event's config has the bits of IA32_RTIT_CTL. The kernel derives OS, User, TraceEn, ToPA and BranchEn
// from other fields of the event (arch/x86/events/intel/pt.c).
std::uint64_t rtit_ctl(const Attr& attr) {
  constexpr std::uint64_t kPassThrough = 1;  // "pt": the config's BranchEn counts only if this bit is set
  const bool branches = (attr.config & kPassThrough) == 0 || (attr.config >> PT_CTL_BRANCH_EN & 1) != 0;
  std::uint64_t ctl = attr.config & ~(kPassThrough | bit(PT_CTL_OS) | bit(PT_CTL_USER));
  ctl |= bit(PT_CTL_TRACE_EN) | bit(PT_CTL_TOPA);
  if (branches) ctl |= bit(PT_CTL_BRANCH_EN);
  if (!attr.flag(kExcludeKernel)) ctl |= bit(PT_CTL_OS);
  if (!attr.flag(kExcludeUser)) ctl |= bit(PT_CTL_USER);
  return ctl;
}

template <typename Number>
bool take_number(std::string_view& text, Number& out) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value > std::numeric_limits<Number>::max()) return false;
  out = static_cast<Number>(value);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (text.starts_with(',')) text.remove_prefix(1);
  return true;
}

// Reads a feature's string: a length, then the text, padded with zeros to a multiple of 64 bytes.
std::string take_text(Fields& fields) {
  const std::uint32_t size = fields.u32();
  return Fields(fields.take_bytes(std::min<std::size_t>(size, fields.left()))).text();
}

void take_clock(Fields& fields, TraceInfo& info) {
  info.time_shift = static_cast<std::uint16_t>(fields.u64());
  info.time_mult = static_cast<std::uint32_t>(fields.u64());
  info.time_zero = fields.u64();
  info.time_known = info.time_mult != 0 && info.time_shift < 64;
}

}  // namespace

std::optional<TraceInfo> parse_info(base::Bytes body) {
  Fields fields(body);
  TraceInfo info;
  info.kind = static_cast<TraceKind>(fields.u32());
  fields.skip(4);
  info.pmu_type = static_cast<std::uint32_t>(fields.u64());
  take_clock(fields, info);
  info.time_known = fields.u64() != 0 && info.time_known;
  if (info.kind == TraceKind::INTEL_PT) fields.skip(24);  // tsc_bit, noretcomp_bit, have_sched_switch
  info.snapshots = fields.u64() != 0;
  if (!fields.ok()) return std::nullopt;
  if (info.kind != TraceKind::INTEL_PT) return info;
  fields.skip(16);  // per_cpu_mmaps, mtc_bit
  info.mtc_freq_bits = fields.u64();
  info.tsc_ctc_numerator = static_cast<std::uint32_t>(fields.u64());
  info.tsc_ctc_denominator = static_cast<std::uint32_t>(fields.u64());
  fields.skip(8);  // cyc_bit
  info.max_nonturbo_ratio = static_cast<std::uint8_t>(fields.u64());
  const std::uint64_t filter_bytes = fields.u64();
  if (filter_bytes != 0) info.filter = fields.text();
  info.filter_known = fields.ok() && (filter_bytes == 0 || !info.filter.empty());
  return info;
}

void keep_time_conversion(const TraceInfo& before, TraceInfo& info) {
  info.time_cycles = before.time_cycles;
  info.time_mask = before.time_mask;
  if (info.time_known || !before.time_known) return;
  info.time_known = true;
  info.time_shift = before.time_shift;
  info.time_mult = before.time_mult;
  info.time_zero = before.time_zero;
}

bool take_time_conversion(base::Bytes body, TraceInfo& out) {
  Fields fields(body);
  TraceInfo found = out;
  take_clock(fields, found);
  if (!fields.ok()) return false;
  const std::uint64_t cycles = fields.u64();
  const std::uint64_t mask = fields.u64();
  const bool zero_known = fields.take<1>() != 0;
  const bool is_short = fields.take<1>() != 0;
  if (fields.ok() && !zero_known) return false;
  if (!out.time_known) out = found;
  if (!fields.ok() || !is_short || mask == ~std::uint64_t{0}) return true;  // older records are shorter
  out.time_cycles = cycles;
  out.time_mask = mask;
  return true;
}

bool parse_cpuid(const std::string& text, trace::Cpu& cpu) {
  std::string_view rest = text;
  const auto comma = rest.find(',');
  if (comma == std::string_view::npos) return false;
  trace::Cpu found;
  found.known = true;
  found.intel = rest.substr(0, comma) == "GenuineIntel";
  rest.remove_prefix(comma + 1);
  if (!take_number(rest, found.family) || !take_number(rest, found.model) ||
      !take_number(rest, found.stepping)) {
    return false;
  }
  cpu = found;
  return true;
}

// Layout (tools/perf/util/header.c, write_pmu_caps): number of PMUs; for each PMU: number of caps, names and
// values of the caps, name of the PMU.
trace::IpPayloads ip_payloads_of(base::Bytes pmu_caps) {
  Fields fields(pmu_caps);
  for (std::uint32_t pmus = fields.u32(); pmus > 0 && fields.left() != 0; --pmus) {
    auto found = trace::IpPayloads::UNKNOWN;
    for (std::uint32_t caps = fields.u32(); caps > 0 && fields.left() != 0; --caps) {
      const std::string name = take_text(fields);
      const std::string value = take_text(fields);
      if (name != kLipCap) continue;
      if (value == "1") found = trace::IpPayloads::LINEAR;
      if (value == "0") found = trace::IpPayloads::EFFECTIVE;
    }
    if (take_text(fields) == kPtPmu && fields.ok()) return found;
  }
  return trace::IpPayloads::UNKNOWN;
}

// Layout (tools/perf/util/header.c, write_cpu_pmu_caps): number of caps, their names and values.
std::size_t lbr_depth_of(base::Bytes cpu_pmu_caps) {
  Fields fields(cpu_pmu_caps);
  for (std::uint32_t caps = fields.u32(); caps > 0 && fields.left() != 0; --caps) {
    const std::string name = take_text(fields);
    const std::string value = take_text(fields);
    std::string_view text = value;
    std::uint16_t depth = 0;
    if (name == "branches" && take_number(text, depth)) return depth;
  }
  return 0;
}

bool traces_kernel(const TraceInfo& info, const std::vector<Attr>& attrs) {
  return std::ranges::any_of(
      attrs, [&](const Attr& attr) { return attr.type == info.pmu_type && !attr.flag(kExcludeKernel); });
}

void configure(const TraceInfo& info, const std::vector<Attr>& attrs, trace::Configuration& out) {
  trace::Clock& clock = out.clock;
  clock.perf_time_known = info.time_known;
  clock.time_shift = info.time_shift;
  clock.time_mult = info.time_mult;
  clock.time_zero = info.time_zero;
  clock.time_cycles = info.time_cycles;
  clock.time_mask = info.time_mask;
  clock.tsc_ctc_numerator = info.tsc_ctc_numerator;
  clock.tsc_ctc_denominator = info.tsc_ctc_denominator;
  clock.max_nonturbo_ratio = info.max_nonturbo_ratio;
  // Shift 0 and factor 1: nanoseconds are ticks of a TSC with an unknown rate.
  const bool rate_known = info.time_shift != 0 || info.time_mult != 1;
  if (info.time_known && rate_known && info.time_shift < 34) {
    clock.tsc_hz = (std::uint64_t{1'000'000'000} << info.time_shift) / info.time_mult;
  }
  if (info.kind != TraceKind::INTEL_PT) return;
  for (const Attr& attr : attrs) {
    if (attr.type != info.pmu_type) continue;
    out.rtit_ctl = rtit_ctl(attr);
    out.rtit_ctl_known = true;
    out.ranges_known = info.filter_known && info.filter.empty();
    if (info.mtc_freq_bits != 0) {
      clock.mtc_period_known = true;
      clock.mtc_period = static_cast<std::uint8_t>((attr.config & info.mtc_freq_bits) >>
                                                   std::countr_zero(info.mtc_freq_bits));
    }
    return;
  }
}

}  // namespace ptkit::formats::perf
