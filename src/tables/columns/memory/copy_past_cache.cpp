#include "tables/columns/memory/copy_past_cache.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/cpu/target.h"

#if PT_SIMD_X86
#include <emmintrin.h>
#endif

namespace ptkit::tables::columns {

void copy_past_cache(void* to, const void* from, std::size_t bytes) noexcept {
  auto* target = static_cast<std::uint8_t*>(to);
  const auto* source = static_cast<const std::uint8_t*>(from);
#if PT_SIMD_X86
  constexpr std::size_t kLine = 64;
  constexpr std::size_t kLanes = sizeof(__m128i);  // every x86-64 processor has these registers
  const std::size_t before =
      std::min((kLine - reinterpret_cast<std::uintptr_t>(target) % kLine) % kLine, bytes);
  std::memcpy(target, source, before);
  target += before;
  source += before;
  bytes -= before;
  for (; bytes >= kLine; bytes -= kLine, target += kLine, source += kLine) {
    for (std::size_t i = 0; i < kLine; i += kLanes) {
      const __m128i cells = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i));
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + i), cells);
    }
  }
  _mm_sfence();
#endif
  std::memcpy(target, source, bytes);
}

}  // namespace ptkit::tables::columns
