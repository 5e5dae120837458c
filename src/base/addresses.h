// Constants of x86-64 addresses.
#pragma once

#include <cstdint>

namespace ptkit::base {

inline constexpr std::uint64_t kPageBytes = 4096;  // larger pages are multiples
inline constexpr std::uint64_t kOffsetInPage = kPageBytes - 1;
inline constexpr std::uint64_t kKernelHalf = std::uint64_t{1} << 63U;  // first address of the kernel's half

}  // namespace ptkit::base
