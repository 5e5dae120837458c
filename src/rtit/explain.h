// What a register's value means, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rtit/registers.h"

namespace ptkit::rtit {

struct FieldValue {
  std::string name;  // "reserved", or "other", for bits without a field that are set
  std::uint8_t first = 0;
  std::uint8_t width = 0;
  std::uint64_t value = 0;  // of the field; of addresses in their place
  std::string words;
};

// From the lowest bit on; all fields, and runs of bits without a field that are set. Empty: not of the model.
[[nodiscard]] std::vector<FieldValue> explain(std::uint32_t number, std::uint64_t value);

// On one line, what is not 0: "TraceEn, User, MTCFreq 3".
[[nodiscard]] std::string summary(std::uint32_t number, std::uint64_t value);

[[nodiscard]] std::string bytes_text(std::uint64_t bytes);  // "64 KiB"

}  // namespace ptkit::rtit
