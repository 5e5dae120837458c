// Which instructions kernels may use: chosen once, by what the processor and the system have.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace ptkit::simd {

enum class Isa : std::uint8_t {
  SCALAR,
  AVX2,    // with BMI1, BMI2, LZCNT and POPCNT
  AVX512,  // with F, BW, DQ, VL, VBMI, VBMI2, BITALG and GFNI
};
inline constexpr Isa kIsas[] = {Isa::SCALAR, Isa::AVX2, Isa::AVX512};

[[nodiscard]] std::string_view isa_name(Isa isa) noexcept;  // "scalar", "avx2", "avx512"
// The processor has it and the system saves its registers.
[[nodiscard]] bool isa_available(Isa isa) noexcept;

struct IsaChoice {
  Isa isa = Isa::SCALAR;
  base::Status status = base::Status::OK;  // BAD_CONFIG: no such name; UNSUPPORTED: not on this machine
};
// The best there is, or what `forced` names (empty: nothing). Where that cannot be had, SCALAR and a status.
[[nodiscard]] IsaChoice choose_isa(std::string_view forced) noexcept;
// The same by the environment variable PTKIT_FORCE_ISA, looked at once.
[[nodiscard]] const IsaChoice& isa_choice() noexcept;

}  // namespace ptkit::simd
