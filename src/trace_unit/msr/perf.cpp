#include "trace_unit/msr/perf.h"

#include <algorithm>
#include <charconv>

#include "base/hexadecimal.h"
#include "trace_unit/msr/registers.h"

namespace ptkit::trace_unit::msr {

namespace {

constexpr std::uint64_t kPassThrough = 1;  // the term "pt"
constexpr std::uint64_t kBranchEn = std::uint64_t{1} << PT_CTL_BRANCH_EN;
constexpr std::string_view kPrefix = "intel_pt/";

std::uint64_t allowed_bits() {
  std::uint64_t bits = kPassThrough;
  for (const Field& field : ctl_fields()) {
    if (!field.perf.empty()) bits |= field.mask();
  }
  return bits;
}

const Field* find_term(std::string_view name) {
  static constexpr Field kPass{"pt", 0, 1, FieldFormat::FLAG, "pt", "", ""};
  if (name == kPass.perf) return &kPass;
  for (const Field& field : ctl_fields()) {
    if (!field.perf.empty() && field.perf == name) return &field;
  }
  return nullptr;
}

std::string all_terms() {
  std::string text = "pt";
  for (const Field& field : ctl_fields()) {
    if (!field.perf.empty()) text += ", " + std::string(field.perf);
  }
  return text;
}

bool parse_number(std::string_view text, std::uint64_t& value) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  return error == std::errc() && end == text.data() + text.size();
}

// One "name" or "name=value".
base::Status add_term(std::string_view term, PerfEvent& event, std::string& detail) {
  const std::size_t equals = term.find('=');
  const std::string name(term.substr(0, equals));
  std::uint64_t value = 1;
  if (equals != std::string_view::npos && !parse_number(term.substr(equals + 1), value)) {
    detail = "perf's term " + std::string(term) + ": the value is no number";
    return base::Status::BAD_CONFIG;
  }
  if (name == "config") {
    event.config |= value;
    return base::Status::OK;
  }
  const Field* field = find_term(name);
  if (field == nullptr) {
    detail = "perf's term " + name + ": there is none of this name; there are " + all_terms() + ", config";
    return base::Status::BAD_CONFIG;
  }
  if (value > field->mask() >> field->first) {
    detail = "perf's term " + std::string(term) + ": the value may be 0 to " +
             std::to_string(field->mask() >> field->first);
    return base::Status::BAD_CONFIG;
  }
  event.config = (event.config & ~field->mask()) | value << field->first;
  return base::Status::OK;
}

// The modifier after the second slash: u, k. None: both.
bool add_modifiers(std::string_view letters, PerfEvent& event) {
  if (letters.empty()) return true;
  event.user = letters.find('u') != std::string_view::npos;
  event.kernel = letters.find('k') != std::string_view::npos;
  return letters.find_first_not_of("uk") == std::string_view::npos;
}

}  // namespace

std::string perf_text(const PerfEvent& event) {
  std::string terms;
  const auto add = [&](const std::string& term) {
    if (!terms.empty()) terms += ',';
    terms += term;
  };
  if ((event.config & kPassThrough) != 0) add("pt");
  for (const Field& field : ctl_fields()) {
    const std::uint64_t value = field.perf.empty() ? 0 : field.of(event.config);
    if (value == 0) continue;
    std::string term(field.perf);
    if (field.width > 1) term.append(1, '=').append(std::to_string(value));
    add(term);
  }
  std::string text(kPrefix);
  text.append(terms).append(1, '/');
  if (event.user != event.kernel) text += event.user ? 'u' : 'k';
  return text;
}

base::Result<PerfEvent> parse_perf(std::string_view text, const PerfEvent& base) {
  PerfEvent event = base;
  std::string_view terms = text;
  if (text.starts_with(kPrefix)) {
    const std::size_t end = text.find('/', kPrefix.size());
    if (end == std::string_view::npos)
      return base::bad_config("perf's event " + std::string(text) + ": the second / is missing");
    terms = text.substr(kPrefix.size(), end - kPrefix.size());
    if (!add_modifiers(text.substr(end + 1), event))
      return base::bad_config("perf's event " + std::string(text) +
                              ": after the second / only u and k are allowed");
  }
  while (!terms.empty()) {
    const std::string_view term = terms.substr(0, terms.find(','));
    terms.remove_prefix(std::min(terms.size(), term.size() + 1));
    std::string detail;
    if (add_term(term, event, detail) != base::Status::OK) return base::bad_config(std::move(detail));
  }
  return event;
}

base::Result<RtitConfig> config_of_perf(const PerfEvent& event) {
  const std::uint64_t foreign = event.config & ~allowed_bits();
  if (foreign != 0)
    return base::bad_config("perf's config has bits that users may not set: " + base::hexadecimal(foreign));
  const bool pass = (event.config & kPassThrough) != 0;
  if (!pass && (event.config & kBranchEn) != 0)
    return base::bad_config("perf's term branch needs the term pt");
  RegisterValues values;
  values.ctl = event.config & ~kPassThrough;
  if (!pass) values.ctl |= kBranchEn;
  RtitConfig config = config_of(values);
  config.trace_en = true;
  config.topa = true;
  config.user = event.user;
  config.os = event.kernel;
  return config;
}

PerfTranslation perf_of(const RtitConfig& config) {
  PerfTranslation out;
  RegisterValues values = values_of(config);
  out.event.config = values.ctl & allowed_bits() & ~kPassThrough;
  // The text cannot express an event that excludes both.
  out.event.user = config.user || !config.os;
  out.event.kernel = config.os || !config.user;
  // Without "pt", BranchEn is always set, also by old drivers without the term.
  if (config.branch_en) {
    out.event.config &= ~kBranchEn;
  } else {
    out.event.config |= kPassThrough;
  }
  const auto back = config_of_perf(out.event);
  const std::uint64_t converted = back.ok() ? values_of(back.value()).ctl : 0;
  for (const Field& field : ctl_fields()) {
    // perf sets TraceEn itself.
    if (field.first != PT_CTL_TRACE_EN && field.of(values.ctl) != field.of(converted))
      out.lost.emplace_back(field.name);
  }
  return out;
}

}  // namespace ptkit::trace_unit::msr
