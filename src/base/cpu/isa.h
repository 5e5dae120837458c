// The instruction set for SIMD kernels: chosen once, by the features of the processor and the operating
// system.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace ptkit::base::cpu {

enum class Isa : std::uint8_t {
  SCALAR,
  AVX512,  // AVX-512 F, BW, DQ, VL, VBMI, VBMI2, BITALG and GFNI; AVX2, BMI1, BMI2, LZCNT and POPCNT
};
inline constexpr Isa kIsas[] = {Isa::SCALAR, Isa::AVX512};

[[nodiscard]] std::string_view isa_name(Isa isa) noexcept;  // "scalar", "avx512"
// Whether the processor has the instructions and the operating system saves their registers (XCR0).
[[nodiscard]] bool isa_available(Isa isa) noexcept;

struct IsaChoice {
  Isa isa = Isa::SCALAR;
  base::Status status = base::Status::OK;  // BAD_CONFIG: unknown name; UNSUPPORTED: not on this machine
};
// The best available set, or the set named `forced` if not empty. If that is not available, SCALAR and a
// status.
[[nodiscard]] IsaChoice choose_isa(std::string_view forced) noexcept;
// The choice by the environment variable PTKIT_FORCE_ISA, which is read once.
[[nodiscard]] const IsaChoice& isa_choice() noexcept;

}  // namespace ptkit::base::cpu
