// Warnings about a recording. warning_codes.h has the codes and warn().
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ptkit::trace {

enum class WarningCode : std::uint8_t;

struct Warning {
  WarningCode code{};
  std::vector<std::string> arguments{};
  std::string subject{};  // a file, CPU, thread or process; empty: all of the recording

  // A copy with this subject.
  [[nodiscard]] Warning at(std::string where) const;
  // The event: "CPU 0: 1 AUX record is PARTIAL: tracing stopped ...".
  [[nodiscard]] std::string sentence() const;
  // The event, and the remedy.
  [[nodiscard]] std::string text() const;
  bool operator==(const Warning&) const = default;
};

}  // namespace ptkit::trace
