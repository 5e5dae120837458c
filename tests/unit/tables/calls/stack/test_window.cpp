// Frames of a window: what happens between two limits.
#include <gtest/gtest.h>

#include <map>

#include "unit/tables/calls/random_branches.h"

namespace ptkit::tables::calls {
namespace {

constexpr std::uint16_t kCrosses = FRAME_BEGINS_BEFORE | FRAME_ENDS_AFTER;

TEST(Window, CutsTheFramesThatAreOpen) {
  Program program;
  program.machine.set_window();
  program.call(kMain + 0x10, kF);  // 10 instructions
  program.call(kF + 0x10, kG);     // 20
  program.ret(kG + 0x10, kF + 0x14);
  program.go_on(3);
  program.machine.on_limit(0, program.position);  // 33
  program.call(kF + 0x20, kG);                    // 43
  program.ret(kG + 0x10, kF + 0x24);              // 53
  program.ret(kF + 0x30, kMain + 0x14);           // 63
  program.call(kMain + 0x20, kH);                 // 73
  program.go_on(4);
  program.machine.on_limit(1, program.position);  // 77
  EXPECT_TRUE(program.machine.has_ended());
  std::vector<Frame> frames;
  for (const Frame& frame : program.frames.frames) {
    if (!frame.is_outside) frames.push_back(frame);
  }
  ASSERT_EQ(frames.size(), 4U);
  const auto expect = [&](std::size_t row, std::uint64_t entry, std::uint64_t whole, std::uint64_t own,
                          std::uint64_t branches, std::uint16_t flags, bool is_call) {
    const Frame& frame = frames[row];
    EXPECT_EQ(frame.entry_ip, entry);
    EXPECT_EQ(frame.instructions, whole);
    EXPECT_EQ(frame.new_instructions, whole);
    EXPECT_EQ(frame.self_instructions, own);
    EXPECT_EQ(frame.branches, branches);
    EXPECT_EQ(frame.flags & kCrosses, flags);
    EXPECT_EQ(frame.is_call(), is_call);
  };
  expect(0, kG, 10, 10, 1, 0, true);
  expect(1, kF, 30, 20, 3, FRAME_BEGINS_BEFORE, false);
  expect(2, kH, 4, 4, 0, FRAME_ENDS_AFTER, true);
  expect(3, kMain, 44, 10, 4, FRAME_BEGINS_BEFORE | FRAME_ENDS_AFTER, false);
}

// The call is before the limit, and the first instruction behind it.
TEST(Window, HasCallsOfWhichItHasTheFirstInstruction) {
  Program before;
  before.machine.set_window();
  before.machine.on_limit(0, before.position);
  before.call(kMain + 0x10, kF);
  before.machine.on_limit(1, before.position);
  EXPECT_TRUE(before.frames.of(kF).is_outside);
  Program behind;
  behind.machine.set_window();
  behind.call(kMain + 0x10, kF);
  behind.machine.on_limit(0, behind.position);
  behind.ret(kF + 0x10, kMain + 0x14);
  behind.finish();
  EXPECT_TRUE(behind.frames.of(kF).is_call());
  EXPECT_FALSE(behind.frames.of(kF).crosses());
  EXPECT_TRUE(behind.frames.of(kMain).is_begin_unseen());
}

// The inner call of a retpoline has no frame once it returns elsewhere.
TEST(Window, BeginsWithinARetpoline) {
  Program program;
  program.machine.set_window();
  program.call(kMain + 0x10, kH);                                    // 10 instructions
  program.branch(flow::BranchKind::CALL, kH + 0x20, kH + 0x30, 20);  // 30
  program.go_on(1);                                                  // 31
  program.machine.on_limit(0, program.position);
  program.branch(flow::BranchKind::RETURN, kH + 0x34, kF, 2);  // 33
  program.ret(kF + 0x40, kMain + 0x14);                        // 43
  program.finish(5);
  EXPECT_EQ(program.frames.of(kF).instructions, 10U);
  EXPECT_FALSE(program.frames.of(kF).crosses());
  EXPECT_TRUE(program.frames.of(kF).is_call());
  EXPECT_EQ(program.frames.of(kH).instructions, 12U);
  EXPECT_EQ(program.frames.of(kH).self_instructions, 2U);
  EXPECT_TRUE(program.frames.of(kH).crosses());
  EXPECT_EQ(program.frames.of(kMain).self_instructions, 5U);
}

// Each thread has counts of its own, and time in which it did not run before the window does not count.
TEST(Window, CutsThreadsThatAreAway) {
  const Owner one{0, 1, 1, 0};
  const Owner other{0, 1, 2, 0};
  Program program;
  const auto at = [&](std::uint64_t tsc) {
    program.position.tsc = tsc;
    program.position.time_known = true;
  };
  program.machine.set_window();
  at(0);
  program.machine.on_owner(one, program.position);
  program.call(kMain + 0x10, kF);
  at(100);
  program.machine.on_owner(other, program.position);
  program.call(kMain + 0x10, kG);
  at(150);
  program.machine.on_limit(0, program.position);
  program.go_on(7);
  at(200);
  program.machine.on_owner(one, program.position);
  program.ret(kF + 0x10, kMain + 0x14);
  at(250);
  program.machine.on_limit(1, program.position);
  EXPECT_EQ(program.frames.of(kF).instructions, 10U);
  EXPECT_EQ(program.frames.of(kF).off_cpu.switched.least, 50U);
  EXPECT_EQ(program.frames.of(kF).begin.tsc, 150U);
  EXPECT_EQ(program.frames.of(kG).instructions, 7U);
  EXPECT_EQ(program.frames.of(kG).off_cpu.switched.least, 50U);
}

TEST(Window, SumsOfAdjacentOnesAddUp) {
  constexpr std::size_t kRows = 2000;
  struct Sums {
    std::uint64_t count = 0;
    std::uint64_t own = 0;
    bool operator==(const Sums&) const = default;
  };
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    std::map<std::uint64_t, Sums> whole;
    std::map<std::uint64_t, Sums> parts;
    const auto add = [](const Program& program, std::map<std::uint64_t, Sums>& sums) {
      for (const Frame& frame : program.frames.frames) {
        if (frame.is_outside) continue;
        EXPECT_LE(frame.self_instructions, frame.instructions);
        Sums& sum = sums[frame.function];
        if (frame.is_call()) ++sum.count;
        sum.own += frame.self_instructions;
      }
    };
    Program all;
    run_random(all, seed, kRows);
    all.finish(0);
    add(all, whole);
    std::mt19937 random(seed);
    std::uint64_t begin_instructions = 0;
    for (std::size_t begin = 0; begin < kRows;) {
      const std::size_t end = begin + 1 + random() % 400;
      Program part;
      run_random(part, seed, kRows, RowWindow{begin, end});
      if (!part.machine.has_ended()) part.finish(0);
      std::uint64_t own = 0;
      for (const Frame& frame : part.frames.frames) own += frame.self_instructions;
      EXPECT_EQ(own, part.position.instructions - begin_instructions) << seed << " " << begin;
      begin_instructions = part.position.instructions;
      add(part, parts);
      begin = end;
    }
    EXPECT_TRUE(whole == parts) << seed;
  }
}

}  // namespace
}  // namespace ptkit::tables::calls
