// Describes the value of a register.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace_unit/msr/registers.h"

namespace ptkit::trace_unit::msr {

struct FieldValue {
  std::string name;  // "reserved" or "other" for set bits without a field
  std::uint8_t first = 0;
  std::uint8_t width = 0;
  std::uint64_t value = 0;  // the field's value; addresses are not shifted
  std::string words;
};

// All fields from the lowest bit on, and groups of set bits without a field. Empty: unknown register.
[[nodiscard]] std::vector<FieldValue> explain(std::uint32_t number, std::uint64_t value);
[[nodiscard]] std::vector<FieldValue> explain(const NamedRegister& which, std::uint64_t value);

// The nonzero fields on one line: "TraceEn, User, MTCFreq 3".
[[nodiscard]] std::string summary(std::uint32_t number, std::uint64_t value);
[[nodiscard]] std::string summary(const NamedRegister& which, std::uint64_t value);

[[nodiscard]] std::string bytes_text(std::uint64_t bytes);  // "64 KiB"

}  // namespace ptkit::trace_unit::msr
