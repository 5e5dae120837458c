#include "capture/common/pt_options.h"

#include <array>
#include <bit>
#include <string>
#include <utility>

#include "capture/common/errors.h"

namespace ptkit::capture {

namespace {

constexpr std::uint32_t kFirstPsbPeriod = 2048;  // PSBFreq 0

// Formats a bitmap: "0, 3, 6, 9".
std::string list(std::uint32_t bitmap) {
  std::string text;
  for (unsigned i = 0; i < 16; ++i) {
    if ((bitmap >> i & 1U) != 0) text += (text.empty() ? "" : ", ") + std::to_string(i);
  }
  return text;
}

// "2048, 4096 bytes".
std::string sizes(const trace_unit::msr::Capabilities& can) {
  std::string text;
  for (unsigned i = 0; i < 16; ++i) {
    if ((can.psb_periods() >> i & 1U) != 0)
      text += (text.empty() ? "" : ", ") + std::to_string(std::uint64_t{kFirstPsbPeriod} << i);
  }
  return (text.empty() ? std::to_string(kFirstPsbPeriod) : text) + " bytes";
}

// The option that sets a field of IA32_RTIT_CTL, and the remedy if the processor lacks the field.
struct Remedy {
  const char* field;
  const char* words;
};
constexpr std::array<Remedy, 8> kRemedies{{
    {"CYCEn", "timing: this processor has no CYC packets; leave \"cyc\" out"},
    {"MTCEn", "timing: this processor has no MTC packets; leave \"mtc\" out"},
    {"PTWEn", "packets: this processor has no PTWRITE; leave \"ptwrite\" out"},
    {"FUPonPTW", "packets: this processor has no PTWRITE; leave \"ptwrite\" out"},
    {"PwrEvtEn", "packets: this processor has no power events; leave \"power\" out"},
    {"EventEn", "packets: this processor has no event trace; leave \"events\" out"},
    {"ToPA", "output: this processor has no ToPA output; use single_range"},
    {"CR3Filter",
     "pid: this processor cannot trace one process alone; record whole processors (cpus=\"all\", -a)"},
}};

}  // namespace

base::Failure explained(const trace_unit::msr::Violation& violation,
                        const trace_unit::msr::Capabilities& can) {
  for (const Remedy& remedy : kRemedies) {
    if (violation.field == remedy.field) return unsupported(remedy.words);
  }
  const auto one_of = [](const char* option, const char* unit, std::uint32_t bitmap) {
    return unsupported(std::string(option) + ": this processor does not have that" + unit +
                       (bitmap != 0 ? "; it has " + list(bitmap) : "; leave it as it is"));
  };
  if (violation.field == "MTCFreq") return one_of("mtc_period", " period", can.mtc_periods());
  if (violation.field == "CycThresh") return one_of("cyc_threshold", " threshold", can.cyc_thresholds());
  if (violation.field == "PSBFreq") return unsupported("psb_period: this processor has only " + sizes(can));
  return unsupported(violation.field + ": " + violation.rule + " (" + violation.section + ")");
}

std::optional<base::Failure> check_branches(const RecordOptions& options) {
  const RecordOptions defaults;
  const std::array<std::pair<bool, const char*>, 7> packets{{
      {!options.return_compression, "return_compression"},
      {options.psb_period != defaults.psb_period, "psb_period"},
      {options.cyc_threshold != defaults.cyc_threshold, "cyc_threshold"},
      {options.packets.any(), "packets"},
      {!options.event.empty(), "event"},
      {options.single_range, "single_range"},
      {!options.filters.empty(), "filters"},
  }};
  for (const auto& [used, name] : packets) {
    if (used) {
      return unsupported(
          std::string(name) +
          ": this is of packets, and branch records have none; leave it out, or record packets "
          "(without bts and branch_stack)");
    }
  }
  return {};
}

bool has_mtc(const RecordOptions& options, const trace_unit::msr::Capabilities& can) noexcept {
  return options.timing_packets().mtc && (can.mtc() || options.timing || options.mtc_period);
}

std::uint8_t mtc_frequency(const RecordOptions& options, const trace_unit::msr::Capabilities& can) noexcept {
  const unsigned wanted = options.mtc_freq();
  if (options.mtc_period) return *options.mtc_period;
  // The nearest supported period. If two are equally near, the longer one.
  for (unsigned away = 0; away < 16; ++away) {
    for (const unsigned one : {wanted + away, wanted - away}) {
      if (one < 16 && (can.mtc_periods() >> one & 1U) != 0) return static_cast<std::uint8_t>(one);
    }
  }
  return options.mtc_freq();
}

std::uint8_t psb_frequency(const RecordOptions& options, const trace_unit::msr::Capabilities& can) noexcept {
  // A processor without configurable PSB frequency has PSBFreq 0 (CPUID leaf 14H, EBX bit 1). The default
  // option then means that frequency.
  const bool fixed = !can.psb_cyc() && options.psb_period == RecordOptions().psb_period;
  const std::uint32_t period = fixed ? kFirstPsbPeriod : options.psb_period;
  return static_cast<std::uint8_t>(std::countr_zero(period / kFirstPsbPeriod));
}

}  // namespace ptkit::capture
