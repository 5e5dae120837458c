#include <gtest/gtest.h>

#include "flow/code/loop_guard.h"

namespace ptkit::flow {
namespace {

TEST(LoopGuard, DistinctIpsAreNoLoop) {
  LoopGuard guard(0);
  for (std::uint64_t ip = 1; ip < 100'000; ++ip) ASSERT_FALSE(guard.loops(ip));
}

TEST(LoopGuard, FindsLoopWithinThreeTimesLengthAndRunUp) {
  constexpr std::uint64_t kLength = 1000;
  for (const std::uint64_t run_up : {0U, 1U, 500U, 5000U}) {
    LoopGuard guard(1'000'000);
    std::uint64_t steps = 0;
    while (steps < 4 * (kLength + run_up) &&
           !guard.loops(steps < run_up ? 2'000'000 + steps : (steps - run_up) % kLength))
      ++steps;
    EXPECT_LE(steps, 3 * (kLength + run_up)) << run_up;
    EXPECT_GE(steps, kLength) << run_up;
  }
}

}  // namespace
}  // namespace ptkit::flow
