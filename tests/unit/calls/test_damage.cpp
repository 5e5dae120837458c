// Branches that no program makes: the machine never fails, and each instruction stays in one frame.
#include <gtest/gtest.h>

#include <random>

#include "unit/calls/machine.h"

namespace ptkit::calls {
namespace {

using flow::BranchKind;

void run_random(Program& program, std::uint32_t seed, std::size_t branches) {
  std::mt19937 random(seed);
  const auto below = [&random](std::uint64_t limit) { return random() % limit; };
  const auto address = [&] {
    const std::uint64_t kernel = below(8) == 0 ? std::uint64_t{1} << 63U : 0;
    return kernel + below(24) * GivenCode::kSize + below(4) * GivenCode::kInsn * (below(3) == 0 ? 0 : 1);
  };
  for (std::size_t i = 0; i < branches; ++i) {
    const std::uint64_t what = below(40);
    if (what == 0) {
      program.machine.on_gap(program.place);
    } else if (what == 1) {
      program.enable(address());
    } else if (what == 2) {
      const auto thread = static_cast<std::int64_t>(below(3));
      const auto space = static_cast<trace::SpaceId>(below(2));
      program.machine.on_owner({0, 1, thread, space}, program.place);
    } else if (what == 3) {
      program.machine.on_leave(program.place);
      program.machine.on_owner({0, 1, 1, 0}, program.place);
    } else {
      program.in_tx = below(16) == 0;
      const auto kind = static_cast<BranchKind>(below(17));
      const bool knows_target = below(16) != 0;
      program.branch(kind, address(), knows_target ? std::optional(address()) : std::nullopt, 1 + below(3));
    }
  }
}

TEST(StackMachine, KeepsItsSumsOnRandomBranches) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Program program(seed % 2 == 0 ? Tails::NESTED : Tails::REPLACED);
    program.code.flags[0x300] = CODE_STUB;
    program.code.flags[0x400] = CODE_SETJMP;
    program.code.flags[0x500] = CODE_RESOLVER;
    program.code.flags[0x600] = CODE_RETURN;
    program.code.flags[0x700] = CODE_COLD;
    program.code.flags[0x800] = CODE_SWITCH;
    program.code.flags[0x900] = CODE_SWITCH | CODE_LEAVE;
    program.code.pads[0x208] = 0x104;
    run_random(program, seed, 4000);
    program.finish();
    EXPECT_EQ(program.self_sum(), program.place.instructions) << seed;
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
  EXPECT_EQ(program.self_sum(), program.place.instructions);
}

}  // namespace
}  // namespace ptkit::calls
