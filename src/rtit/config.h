// A configuration of a trace unit, by the manual's names; as register values; and what is wrong with it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ptkit/rtit_regs.h"
#include "rtit/capabilities.h"

namespace ptkit::rtit {

struct AddressRange {
  std::uint64_t a = 0;  // first
  std::uint64_t b = 0;  // last, inclusive

  bool operator==(const AddressRange&) const = default;
};

struct RtitConfig {
  // The fields of IA32_RTIT_CTL.
#define PT_CTL_FIELD(member, type, name, shift, width, reading, perf, set, clear) type member{};
#include "rtit/ctl.def"
#undef PT_CTL_FIELD
  // The other registers.
  std::uint64_t status = 0;
  std::uint64_t output_base = 0;
  std::uint64_t output_mask_ptrs = PT_OUTPUT_MASK_LOWEST;
  std::uint64_t cr3_match = 0;
  std::array<AddressRange, PT_MSR_RTIT_ADDR_COUNT> addr{};

  bool operator==(const RtitConfig&) const = default;
};

struct RegisterValues {
  std::uint64_t ctl = 0;
  std::uint64_t status = 0;
  std::uint64_t output_base = 0;
  std::uint64_t output_mask_ptrs = PT_OUTPUT_MASK_LOWEST;
  std::uint64_t cr3_match = 0;
  std::array<std::uint64_t, 2 * PT_MSR_RTIT_ADDR_COUNT> addr{};  // ADDR0_A, ADDR0_B, ADDR1_A, ...

  bool operator==(const RegisterValues&) const = default;
};

// What happens where a rule is broken.
enum class Effect : std::uint8_t {
  FAULT,    // the WRMSR faults (#GP)
  ERROR,    // STATUS.Error is set instead of tracing
  NOTHING,  // it is allowed, and leads to nothing
};

struct Violation {
  std::uint32_t msr = 0;
  std::string field;
  std::string rule;
  std::string section;  // of the manual's chapter "Intel Processor Trace"
  Effect effect = Effect::FAULT;
};

// Fields that are too large for their width lose their upper bits: check() first.
[[nodiscard]] RegisterValues values_of(const RtitConfig& config);
[[nodiscard]] RtitConfig config_of(const RegisterValues& values);

// Every rule that is broken once TraceEn is set, those of kernel/common and those of widths.
[[nodiscard]] std::vector<Violation> check(const RegisterValues& values, const Capabilities& capabilities);
[[nodiscard]] std::vector<Violation> check(const RtitConfig& config, const Capabilities& capabilities);
// Nothing faults, nothing ends in an error.
[[nodiscard]] bool accepted(const std::vector<Violation>& violations);

}  // namespace ptkit::rtit
