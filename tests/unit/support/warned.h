// Warnings in tests: by code, subject and arguments; their sentences are test_warnings.cpp's.
#pragma once

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "trace/bundle.h"
#include "trace/warning_codes.h"

namespace ptkit {

using trace::WarningCode;

namespace trace {

inline void PrintTo(const Warning& warning, std::ostream* out) { *out << warning.text(); }

inline bool begins_with(const Warning& warning, const std::vector<std::string>& arguments) {
  return warning.arguments.size() >= arguments.size() &&
         std::equal(arguments.begin(), arguments.end(), warning.arguments.begin());
}

// Whether a warning has this code, and these as its first arguments.
template <typename... Arguments>
bool warns(const std::vector<Warning>& warnings, WarningCode code, const Arguments&... first) {
  const std::vector<std::string> arguments{to_argument(first)...};
  return std::ranges::any_of(
      warnings, [&](const Warning& one) { return one.code == code && begins_with(one, arguments); });
}

template <typename... Arguments>
bool warns(const TraceBundle& bundle, WarningCode code, const Arguments&... first) {
  return warns(bundle.warnings, code, first...);
}

// The same of a subject, such as "CPU 0".
template <typename... Arguments>
bool warns_at(const std::vector<Warning>& warnings, const std::string& subject, WarningCode code,
              const Arguments&... first) {
  const std::vector<std::string> arguments{to_argument(first)...};
  return std::ranges::any_of(warnings, [&](const Warning& one) {
    return one.subject == subject && one.code == code && begins_with(one, arguments);
  });
}

}  // namespace trace
}  // namespace ptkit
