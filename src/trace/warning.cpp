#include "trace/warning.h"

#include <utility>

#include "base/shortened.h"
#include "trace/warning_codes.h"

namespace ptkit::trace {

namespace {

// One field of a sentence, without its braces: "0" or "0:one|many".
std::string fill_field(std::string_view field, const std::vector<std::string>& arguments) {
  const auto number = static_cast<std::size_t>(field[0] - '0');
  if (number >= arguments.size()) return "?";
  const std::string& argument = arguments[number];
  if (field.size() == 1) return base::shortened_message(argument);
  const std::string_view forms = field.substr(2);
  const std::size_t bar = forms.find('|');
  return std::string(argument == "1" ? forms.substr(0, bar) : forms.substr(bar + 1));
}

constexpr bool is_filled(std::string_view sentence) {
  for (std::size_t at = sentence.find('{'); at != std::string_view::npos; at = sentence.find('{', at + 1)) {
    const std::size_t end = sentence.find('}', at);
    if (end == std::string_view::npos || end < at + 2) return false;
    const std::string_view field = sentence.substr(at + 1, end - at - 1);
    if (field[0] < '0' || field[0] > '9') return false;
    if (field.size() > 1 && (field[1] != ':' || field.find('|') == std::string_view::npos)) return false;
  }
  return true;
}

constexpr bool are_filled() {
  for (const WarningRow& row : kWarnings) {
    if (!is_filled(row.sentence) || row.remedy.find('{') != std::string_view::npos) return false;
  }
  return true;
}
static_assert(are_filled());

}  // namespace

std::string_view severity_name(WarningSeverity severity) noexcept {
  switch (severity) {
    case WarningSeverity::NOTE:
      return "NOTE";
    case WarningSeverity::DEGRADED:
      return "DEGRADED";
    case WarningSeverity::LOSS:
      return "LOSS";
  }
  return "UNKNOWN";
}

Warning Warning::at(std::string where) const {
  Warning out = *this;
  out.subject = std::move(where);
  return out;
}

std::string Warning::sentence() const {
  std::string out = subject.empty() ? std::string() : base::shortened_message(subject) + ": ";
  std::string_view rest = warning_row(code).sentence;
  while (!rest.empty()) {
    const std::size_t begin = rest.find('{');
    out += rest.substr(0, begin);
    if (begin == std::string_view::npos) break;
    const std::size_t end = rest.find('}', begin);
    out += fill_field(rest.substr(begin + 1, end - begin - 1), arguments);
    rest.remove_prefix(end + 1);
  }
  return out;
}

std::string Warning::text() const {
  const std::string_view remedy = warning_row(code).remedy;
  return remedy.empty() ? sentence() : sentence().append(" ").append(remedy);
}

}  // namespace ptkit::trace
