// Functions for more than the baseline processor. The attribute stands at each function: a flag per file
// would also reach inline functions of headers, whose copies the linker may then pick for everybody.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define PT_SIMD_X86 1
#define PT_TARGET_AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))
#define PT_TARGET_AVX512                                                           \
  __attribute__((                                                                  \
      target("avx2,bmi,bmi2,popcnt,lzcnt,gfni,avx512f,avx512bw,avx512dq,avx512vl," \
             "avx512vbmi,avx512vbmi2,avx512bitalg")))
#define PT_INLINE_AVX2 PT_TARGET_AVX2 __attribute__((always_inline)) inline
#define PT_INLINE_AVX512 PT_TARGET_AVX512 __attribute__((always_inline)) inline
#else
#define PT_SIMD_X86 0
#endif
