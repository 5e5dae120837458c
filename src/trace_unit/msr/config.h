// A trace unit's configuration: by the manual's field names, as register values, and the rules that it
// violates.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ptkit/rtit_regs.h"
#include "trace_unit/msr/capabilities.h"

namespace ptkit::trace_unit::msr {

struct AddressRange {
  std::uint64_t a = 0;  // first
  std::uint64_t b = 0;  // last, inclusive

  bool operator==(const AddressRange&) const = default;
};

struct RtitConfig {
  // The fields of IA32_RTIT_CTL.
#define PT_CTL_FIELD(member, type, name, shift, width, format, perf, set, clear) type member{};
#include "trace_unit/msr/ctl.def"
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

// The effect of a violated rule.
enum class Effect : std::uint8_t {
  FAULT,     // WRMSR raises #GP
  ERROR,     // IA32_RTIT_STATUS.Error is set, and the unit does not trace
  NOTHING,   // allowed, but has no effect
  UNTRACED,  // allowed, but nothing is traced
};

struct Violation {
  std::uint32_t msr = 0;
  std::string field;
  std::string rule;
  std::string section;  // section in the manual's chapter "Intel Processor Trace"
  Effect effect = Effect::FAULT;
};

// Values that exceed their field lose their upper bits. Call check() first.
[[nodiscard]] RegisterValues values_of(const RtitConfig& config);
[[nodiscard]] RtitConfig config_of(const RegisterValues& values);

// All rules that are violated once TraceEn is set: those of kernel/common, and field widths.
[[nodiscard]] std::vector<Violation> check(const RegisterValues& values, const Capabilities& capabilities);
[[nodiscard]] std::vector<Violation> check(const RtitConfig& config, const Capabilities& capabilities);
// Whether a processor refuses to trace: the effect is FAULT or ERROR.
[[nodiscard]] bool is_refused(const Violation& violation) noexcept;
// Whether none of them is refused.
[[nodiscard]] bool accepted(const std::vector<Violation>& violations);

}  // namespace ptkit::trace_unit::msr
