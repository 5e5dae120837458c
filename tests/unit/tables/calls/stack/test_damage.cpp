// Branches that no program makes: the machine never fails, and each instruction stays in one frame.
#include <gtest/gtest.h>

#include "unit/tables/calls/random_branches.h"

namespace ptkit::tables::calls {
namespace {

TEST(StackMachine, KeepsItsSumsOnRandomBranches) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Program program(seed % 2 == 0 ? Tails::NESTED : Tails::REPLACED);
    run_random(program, seed, 4000);
    program.finish();
    EXPECT_EQ(program.self_sum(), program.position.instructions) << seed;
    std::vector<bool> ids(program.frames.frames.size());
    for (const Frame& frame : program.frames.frames) {
      ASSERT_LT(frame.id, ids.size()) << seed;
      EXPECT_FALSE(ids[frame.id]) << seed;
      ids[frame.id] = true;
      EXPECT_LE(frame.self_instructions, frame.instructions) << seed;
      EXPECT_LE(frame.new_instructions, frame.instructions) << seed;
    }
  }
}

TEST(StackMachine, SearchesNoLongerThanItHasPushed) {
  // Each return fits nothing, below many frames: a search of all of them each time would take hours.
  Program program;
  constexpr std::size_t kDepth = 100'000;
  for (std::size_t i = 0; i < kDepth; ++i) program.call(0x110 + i % 2 * 0x100, 0x100 + (i + 1) % 2 * 0x100);
  for (std::size_t i = 0; i < kDepth; ++i) program.ret(0x310, 0x320 + i % 8 * 4);
  program.finish();
  EXPECT_EQ(program.frames.anomalies.size(), kDepth);
  EXPECT_EQ(program.self_sum(), program.position.instructions);
}

}  // namespace
}  // namespace ptkit::tables::calls
