// Warnings about a recording, in one enumeration. Every code has a severity, a sentence and a remedy in
// warnings.def.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "trace/warning.h"

namespace ptkit::trace {

enum class WarningSeverity : std::uint8_t {
  NOTE,      // nothing is lost
  DEGRADED,  // rows may be less exact
  LOSS,      // data is missing
};

enum class WarningCode : std::uint8_t {
#define PT_WARNING(name, severity, sentence, remedy) name,
#include "trace/warnings.def"
#undef PT_WARNING
};

struct WarningRow {
  WarningCode code;
  std::string_view name;  // "AUX_PARTIAL"
  WarningSeverity severity;
  std::string_view sentence;  // with {0} for arguments and {0:one|many} for plurals
  std::string_view remedy;    // a sentence; may be empty
};

inline constexpr WarningRow kWarnings[] = {
#define PT_WARNING(name, severity, sentence, remedy) \
  {WarningCode::name, #name, WarningSeverity::severity, sentence, remedy},
#include "trace/warnings.def"
#undef PT_WARNING
};

[[nodiscard]] constexpr const WarningRow& warning_row(WarningCode code) noexcept {
  return kWarnings[static_cast<std::size_t>(code)];
}

// How many arguments the sentence has: the highest number in it, plus 1.
[[nodiscard]] constexpr std::size_t count_arguments(WarningCode code) noexcept {
  const std::string_view sentence = warning_row(code).sentence;
  std::size_t count = 0;
  for (std::size_t at = sentence.find('{'); at != std::string_view::npos; at = sentence.find('{', at + 1)) {
    const auto number = static_cast<std::size_t>(sentence[at + 1] - '0');
    if (number >= count) count = number + 1;
  }
  return count;
}

[[nodiscard]] std::string_view severity_name(WarningSeverity severity) noexcept;  // "LOSS"

// A code with as many arguments as its sentence has, or the program does not compile.
template <typename... Arguments>
class CodeFor {
 public:
  consteval CodeFor(WarningCode code) : code_(code) {  // NOLINT(google-explicit-constructor)
    if (count_arguments(code) != sizeof...(Arguments)) has_another_number_of_arguments();
  }
  [[nodiscard]] constexpr WarningCode code() const noexcept { return code_; }

 private:
  static void has_another_number_of_arguments() {}  // may not be called at compile time

  WarningCode code_;
};

[[nodiscard]] inline std::string to_argument(std::string text) { return text; }
[[nodiscard]] std::string to_argument(std::integral auto number) { return std::to_string(number); }

// warn(WarningCode::AUX_PARTIAL, count).at("CPU 0")
template <typename... Arguments>
[[nodiscard]] Warning warn(CodeFor<std::type_identity_t<Arguments>...> code, Arguments&&... arguments) {
  return {.code = code.code(), .arguments = {to_argument(std::forward<Arguments>(arguments))...}};
}

}  // namespace ptkit::trace
