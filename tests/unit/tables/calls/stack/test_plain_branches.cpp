// The short way of frequent branches gives the frames of the long one.
#include <gtest/gtest.h>

#include <tuple>

#include "tables/calls/stack/plain_branches.h"
#include "unit/tables/calls/random_branches.h"

namespace ptkit::tables::calls {
namespace {

[[nodiscard]] auto position_of(const StreamPosition& at) {
  return std::tuple(at.instructions, at.branches, at.stream_instructions, at.offset, at.tsc, at.time_known);
}

[[nodiscard]] auto identity_of(const Frame& frame) {
  return std::tuple(frame.id, frame.parent, frame.entry_ip, frame.call_ip, frame.return_ip, frame.import_ip,
                    frame.continues, frame.function, frame.cell, frame.segment, frame.depth, frame.how,
                    frame.end_how, frame.flags, frame.is_far, frame.is_outside);
}

[[nodiscard]] auto sums_of(const Frame& frame) {
  const auto share = [](const GroupShare& one) {
    return std::tuple(one.new_instructions, one.new_branches, one.is_recursive);
  };
  return std::tuple(frame.instructions, frame.self_instructions, frame.new_instructions, frame.branches,
                    frame.new_branches, share(frame.more[0]), share(frame.more[1]));
}

void expect_same(const Program& one, const Program& other) {
  ASSERT_EQ(one.frames.frames.size(), other.frames.frames.size());
  for (std::size_t i = 0; i < one.frames.frames.size(); ++i) {
    const Frame& frame = one.frames.frames[i];
    const Frame& same = other.frames.frames[i];
    ASSERT_EQ(identity_of(frame), identity_of(same));
    ASSERT_EQ(position_of(frame.begin), position_of(same.begin));
    ASSERT_EQ(position_of(frame.end), position_of(same.end));
    ASSERT_EQ(sums_of(frame), sums_of(same));
    ASSERT_EQ(frame.off_cpu, same.off_cpu);
    ASSERT_EQ(one.frames.owners[i], other.frames.owners[i]);
  }
  ASSERT_EQ(one.frames.anomalies.size(), other.frames.anomalies.size());
}

TEST(PlainBranches, GiveTheFramesOfAllRules) {
  for (const Tails tails : {Tails::NESTED, Tails::REPLACED}) {
    std::size_t plain = 0;
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
      Program one(tails);
      Program other(tails);
      other.tries_plain = true;
      run_mixed(one, seed);
      run_mixed(other, seed);
      ASSERT_NO_FATAL_FAILURE(expect_same(one, other)) << "seed " << seed;
      EXPECT_EQ(one.plain_branches, 0U);
      plain += other.plain_branches;
    }
    EXPECT_GT(plain, 50'000U);  // of 240,000: the way is tested
  }
}

TEST(PlainBranches, AreNoneOfRulesOfTheirOwn) {
  Program program;
  program.tries_plain = true;
  program.code.flags[kG] = CODE_SETJMP;
  program.code.flags[kH] = CODE_STUB;
  program.call(kMain, kF);  // no frame is open
  EXPECT_EQ(program.plain_branches, 0U);
  program.call(kF, kG);
  program.ret(kG, kF + GivenCode::kInsn);
  EXPECT_EQ(program.plain_branches, 0U);
  program.call(kF, kH);
  program.jump_indirect(kH, kMain);
  EXPECT_EQ(program.plain_branches, 0U);
  program.call(kMain, kF);
  EXPECT_EQ(program.plain_branches, 1U);
  program.ret(kF, kMain + 0x40);  // to none of the open frames
  EXPECT_EQ(program.plain_branches, 1U);
}

}  // namespace
}  // namespace ptkit::tables::calls
