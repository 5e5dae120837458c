// The processor's time that something takes. Tests of time here are for what must not grow with the square of
// what a file has: their limits are many times what is needed, and a small part of what a square would take.
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
