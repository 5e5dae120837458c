// Macros for functions that need more than the baseline instruction set. The target attribute is set per
// function. A compiler flag per file would also apply to inline functions of headers: the linker may then use
// their copies from that file for all callers, on a baseline processor, too.
#pragma once

// Windows aligns stacks to 16 bytes, and GCC does not align its vectors of 32 and 64 bytes there.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(_WIN32)
#define PT_SIMD_X86 1
#define PT_TARGET_AVX512                                                           \
  __attribute__((                                                                  \
      target("avx2,bmi,bmi2,popcnt,lzcnt,gfni,avx512f,avx512bw,avx512dq,avx512vl," \
             "avx512vbmi,avx512vbmi2,avx512bitalg")))
#define PT_INLINE_AVX512 PT_TARGET_AVX512 __attribute__((always_inline)) inline
#else
#define PT_SIMD_X86 0
#endif
