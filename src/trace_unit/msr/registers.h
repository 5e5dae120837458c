// The registers of the programming model: numbers, names, and descriptions of fields.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptkit::trace_unit::msr {

// How to describe a field's value.
enum class FieldFormat : std::uint8_t {
  FLAG,
  NUMBER,
  ADDRESS,     // not shifted: the bits below the field are 0
  LOWER_MASK,  // always all ones
  MASK_OR_TABLE,
  MTC_FREQ,
  CYC_THRESH,
  PSB_FREQ,
  ADDR_CFG,
};

struct Field {
  std::string_view name;
  std::uint8_t first = 0;  // bit
  std::uint8_t width = 0;
  FieldFormat format = FieldFormat::FLAG;
  std::string_view perf;  // the term of perf's intel_pt event, if any
  std::string_view set;
  std::string_view clear;

  [[nodiscard]] std::uint64_t mask() const noexcept {  // not shifted
    return (width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1) << first;
  }
  [[nodiscard]] std::uint64_t of(std::uint64_t value) const noexcept { return (value & mask()) >> first; }
};

struct Register {
  std::uint32_t number = 0;  // number of the first register
  std::uint32_t count = 1;
  std::uint32_t stride = 1;
  std::string_view name;  // n stands for the index of one of several registers
  bool complete = true;   // bits without a field are reserved
  std::string_view words;
  std::span<const Field> fields;  // from the lowest bit on
};

[[nodiscard]] std::span<const Register> registers() noexcept;
[[nodiscard]] std::span<const Field> ctl_fields() noexcept;
[[nodiscard]] const Register* find_register(std::uint32_t number) noexcept;  // null: unknown register
// "IA32_RTIT_ADDR1_A"; "MSR 0x..." for unknown registers.
[[nodiscard]] std::string register_name(std::uint32_t number);
[[nodiscard]] std::string register_name(const Register& row, std::uint32_t index);
// A register of the model: its row, and its number.
struct NamedRegister {
  const Register* row = nullptr;
  std::uint32_t number = 0;
};
// Finds a register by its name, in any case, with or without IA32_ or MSR_.
[[nodiscard]] std::optional<NamedRegister> register_named(std::string_view name);

}  // namespace ptkit::trace_unit::msr
