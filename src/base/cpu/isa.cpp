#include "base/cpu/isa.h"

#include <cstdlib>

#include "base/cpu/target.h"

namespace ptkit::base::cpu {

std::string_view isa_name(Isa isa) noexcept {
  switch (isa) {
    case Isa::SCALAR:
      return "scalar";
    case Isa::AVX512:
      return "avx512";
  }
  return "?";
}

bool isa_available(Isa isa) noexcept {
#if PT_SIMD_X86
  // The compiler's function checks XCR0, too.
  __builtin_cpu_init();
  return isa == Isa::SCALAR ||
         (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
          __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("avx512f") &&
          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") &&
          __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bitalg") &&
          __builtin_cpu_supports("gfni"));
#else
  return isa == Isa::SCALAR;
#endif
}

IsaChoice choose_isa(std::string_view forced) noexcept {
  if (forced.empty()) return {isa_available(Isa::AVX512) ? Isa::AVX512 : Isa::SCALAR, base::Status::OK};
  for (const Isa isa : kIsas) {
    if (isa_name(isa) != forced) continue;
    if (isa_available(isa)) return {isa, base::Status::OK};
    return {Isa::SCALAR, base::Status::UNSUPPORTED};
  }
  return {Isa::SCALAR, base::Status::BAD_CONFIG};
}

const IsaChoice& isa_choice() noexcept {
  static const IsaChoice choice = [] {
    const char* forced = std::getenv("PTKIT_FORCE_ISA");
    return choose_isa(forced == nullptr ? "" : forced);
  }();
  return choice;
}

}  // namespace ptkit::base::cpu
