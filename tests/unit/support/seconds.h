// Measures CPU time. Tests use it to show that an algorithm is not quadratic in the size of a file: their
// limits are far above the time of the algorithm and far below the time of a quadratic one.
#pragma once

#include <ctime>

namespace ptkit::formats::test {

template <typename Work>
double seconds_of(const Work& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace ptkit::formats::test
