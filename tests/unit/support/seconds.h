// Measures CPU time. Tests use it to show that an algorithm does not repeat work, and is not quadratic in the
// size of a file: their limits are far above the time of the algorithm and far below the time of the worse
// one.
#pragma once

#include <ctime>

namespace ptkit::test {

// Sanitizers take longer, and so does an emulator: `make portable` runs tests for other processors in one.
#if defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__)
inline constexpr double kSlowdown = 8;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr double kSlowdown = 8;
#else
inline constexpr double kSlowdown = 1;
#endif
#else
inline constexpr double kSlowdown = 1;
#endif

// About as a build without sanitizers takes on a processor of its own.
template <typename Work>
double seconds_of(const Work& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / kSlowdown;
}

}  // namespace ptkit::test
