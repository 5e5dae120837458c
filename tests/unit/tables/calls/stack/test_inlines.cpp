#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "unit/tables/calls/random_branches.h"

namespace ptkit::tables::calls {
namespace {

using flow::BranchKind;

constexpr std::uint32_t kFirst = 900;  // functions
constexpr std::uint32_t kSecond = 901;

// Inlined calls of code in which each instruction has 4 bytes.
class GivenInlines final : public InlineFacts {
 public:
  void follow(trace::SpaceId, std::uint64_t) override {}
  [[nodiscard]] const InlinePath& path(std::uint64_t first, std::uint64_t, std::uint64_t count) override {
    path_ = {};
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint64_t ip = first + i * GivenCode::kInsn;
      const auto found = of.find(ip);
      const std::uint32_t call = found == of.end() ? kNotInlined : found->second;
      if (i == 0 || call != path_.changes.back().call) path_.changes.push_back({ip, i, 0, call});
    }
    return path_;
  }
  [[nodiscard]] bool begins_at(std::uint32_t, std::uint64_t ip) override { return !middles.contains(ip); }
  [[nodiscard]] const InlinedCall& call(std::uint32_t number) const override { return calls[number]; }

  // Instructions from `first` up to `end` are in this call.
  void put(std::uint64_t first, std::uint64_t end, std::uint32_t call) {
    for (std::uint64_t ip = first; ip < end; ip += GivenCode::kInsn) of[ip] = call;
  }

  // Calls of the functions of run_random().
  void put_random(std::uint32_t seed) {
    std::mt19937 random(seed);
    for (std::uint32_t i = 1; i <= 8; ++i) {
      const std::uint32_t caller = random() % 3 == 0 ? kNotInlined : static_cast<std::uint32_t>(random() % i);
      calls.push_back({caller, calls[caller].level + 1, kFirst + i});
    }
    for (std::uint64_t function = 0; function < 24; ++function) {
      for (std::uint64_t insn = 0; insn < 8; ++insn)
        of[function * GivenCode::kSize + insn * GivenCode::kInsn] = static_cast<std::uint32_t>(random() % 9);
    }
  }

  std::map<std::uint64_t, std::uint32_t> of;  // by address
  std::set<std::uint64_t> middles;            // where no call begins
  std::vector<InlinedCall> calls{{}};

 private:
  InlinePath path_;
};

class Inlines : public testing::Test {
 protected:
  Inlines() {
    inlines.calls.push_back({kNotInlined, 1, kFirst});
    inlines.calls.push_back({1, 2, kSecond});
    inlines.calls.push_back({kNotInlined, 1, kFirst});
    program.machine.set_inlines(&inlines);
    program.machine.on_enabled(kMain, {});
  }
  // Two rounds of a loop with two parts of a call's code.
  void loop_through_two_parts(std::uint64_t middle) {
    inlines.put(kMain + 4, kMain + 12, 1);
    inlines.put(kMain + 84, kMain + 92, 1);
    inlines.middles = {middle};
    for (int round = 0; round < 2; ++round) {
      program.jump(kMain + 36, kMain + 80);
      program.jump(kMain + 116, kMain);
    }
    program.finish(1);
  }
  // Of four frames, every second one has the rest of an execution.
  void expect_rests() const {
    const auto found = of(kFirst);
    ASSERT_EQ(found.size(), 4U);
    EXPECT_FALSE(found[0].is_rest());
    EXPECT_TRUE(found[1].is_rest());
    EXPECT_EQ(found[1].continues, found[0].id);
    EXPECT_FALSE(found[2].is_rest());
    EXPECT_EQ(found[3].continues, found[2].id);
  }
  // The frames of a function, in the order in which they ended.
  [[nodiscard]] std::vector<Frame> of(std::uint32_t function) const {
    std::vector<Frame> found;
    for (const Frame& frame : program.frames.frames) {
      if (frame.function == function) found.push_back(frame);
    }
    return found;
  }

  Program program;
  GivenInlines inlines;
};

TEST_F(Inlines, CallsThatAreInlinedHaveFrames) {
  inlines.put(kMain + 8, kMain + 20, 1);
  program.call(kMain + 36, kF);
  program.ret(kF + 36, kMain + 40);
  program.finish();
  const auto found = of(kFirst);
  ASSERT_EQ(found.size(), 1U);
  const Frame& main = program.frames.of(kMain);
  EXPECT_EQ(found[0].how, CallKind::INLINED);
  EXPECT_EQ(found[0].end_how, CallEnd::RETURN);
  EXPECT_EQ(found[0].entry_ip, kMain + 8);
  EXPECT_EQ(found[0].inline_level, 1);
  EXPECT_EQ(found[0].parent, main.id);
  EXPECT_EQ(found[0].depth, main.depth + 1);
  EXPECT_EQ(found[0].instructions, 3U);
  EXPECT_EQ(found[0].begin.instructions, 2U);
  EXPECT_EQ(found[0].end.instructions, 5U);
  EXPECT_EQ(main.self_instructions, 10U - 3U + 5U);
  EXPECT_EQ(program.frames.of(kF).parent, main.id);
  EXPECT_EQ(program.self_sum(), 25U);
}

TEST_F(Inlines, NestedCallsAreFramesAboveEachOther) {
  inlines.put(kMain + 4, kMain + 24, 1);
  inlines.put(kMain + 8, kMain + 16, 2);
  program.call(kMain + 36, kF);
  program.ret(kF + 36, kMain + 40);
  program.finish();
  ASSERT_EQ(of(kFirst).size(), 1U);
  ASSERT_EQ(of(kSecond).size(), 1U);
  const Frame outer = of(kFirst)[0];
  const Frame inner = of(kSecond)[0];
  EXPECT_EQ(inner.parent, outer.id);
  EXPECT_EQ(inner.depth, outer.depth + 1);
  EXPECT_EQ(inner.self_instructions, 2U);
  EXPECT_EQ(outer.instructions, 5U);
  EXPECT_EQ(outer.self_instructions, 3U);
}

TEST_F(Inlines, ACallThatIsEnteredAtItsInnermostCallHasBoth) {
  inlines.put(kMain + 8, kMain + 16, 2);
  program.call(kMain + 36, kF);
  program.finish();
  ASSERT_EQ(of(kFirst).size(), 1U);
  ASSERT_EQ(of(kSecond).size(), 1U);
  EXPECT_EQ(of(kSecond)[0].parent, of(kFirst)[0].id);
  EXPECT_EQ(of(kFirst)[0].entry_ip, kMain + 8);
  EXPECT_EQ(of(kFirst)[0].self_instructions, 0U);
}

TEST_F(Inlines, GoesOnBehindAFunctionThatItCalls) {
  inlines.put(kMain + 8, kMain + 48, 1);
  program.call(kMain + 36, kF);
  program.ret(kF + 36, kMain + 40);
  program.jump(kMain + 76, kMain);
  program.finish(1);
  const auto found = of(kFirst);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(program.frames.of(kF).parent, found[0].id);
  EXPECT_EQ(found[0].instructions, 8U + 10U + 2U);
  EXPECT_EQ(found[0].self_instructions, 10U);
}

TEST_F(Inlines, TwoCallsOfAFunctionAreTwoFrames) {
  inlines.put(kMain, kMain + 12, 1);
  inlines.put(kMain + 12, kMain + 20, 3);
  program.call(kMain + 36, kF);
  program.finish();
  const auto found = of(kFirst);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].instructions, 3U);
  EXPECT_EQ(found[1].instructions, 2U);
  EXPECT_FALSE(found[1].is_rest());
}

TEST_F(Inlines, EachRoundOfALoopIsAnExecution) {
  inlines.put(kMain + 8, kMain + 20, 1);
  for (int round = 0; round < 3; ++round) program.jump(kMain + 36, kMain);
  program.finish(1);
  const auto found = of(kFirst);
  ASSERT_EQ(found.size(), 3U);
  for (const Frame& frame : found) EXPECT_FALSE(frame.is_rest());
}

TEST_F(Inlines, ALoopWithinItIsOneExecution) {
  inlines.put(kMain + 8, kMain + 48, 1);
  program.jump(kMain + 36, kMain + 12);
  program.branch(BranchKind::COND, kMain + 36, kMain + 12, 7);
  program.branch(BranchKind::CALL, kMain + 76, kF, 17);
  program.finish();
  ASSERT_EQ(of(kFirst).size(), 1U);
  EXPECT_EQ(of(kFirst)[0].instructions, 8U + 7U + 9U);
}

TEST_F(Inlines, CodeMixedWithOtherCodeIsOneExecution) {
  inlines.put(kMain + 4, kMain + 12, 1);
  inlines.put(kMain + 16, kMain + 24, 1);
  program.jump(kMain + 36, kMain);
  program.jump(kMain + 36, kMain);
  program.finish(1);
  expect_rests();
}

TEST_F(Inlines, CodeWhereTheCallDoesNotBeginIsOfTheLastExecution) {
  loop_through_two_parts(kMain + 84);
  expect_rests();
}

TEST_F(Inlines, AnExecutionMayBeginBeforeTheLineOnWhichTheCallBegins) {
  loop_through_two_parts(kMain + 4);
  const auto found = of(kFirst);
  ASSERT_EQ(found.size(), 4U);
  const auto rests =
      std::count_if(found.begin(), found.end(), [](const Frame& one) { return one.is_rest(); });
  EXPECT_EQ(rests, 2);
}

TEST_F(Inlines, GoesOnWhenTheThreadComesBack) {
  inlines.put(kMain + 8, kMain + 20, 1);
  program.go_on(3);
  program.machine.on_leave(program.position);
  program.machine.on_owner({}, program.position);
  EXPECT_TRUE(of(kFirst).empty());
  program.branch(BranchKind::CALL, kMain + 36, kF, 7);
  program.finish();
  ASSERT_EQ(of(kFirst).size(), 1U);
  EXPECT_EQ(of(kFirst)[0].instructions, 3U);
}

TEST_F(Inlines, RecursionHasAFrameForEachRound) {
  inlines.put(kMain + 4, kMain + 60, 1);
  program.call(kMain + 36, kMain);
  program.call(kMain + 36, kMain);
  program.branch(BranchKind::RETURN, kMain + 56, kMain + 40, 15);
  program.ret(kMain + 76, kMain + 40);
  program.finish();
  const auto found = of(kFirst);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_NE(found[0].flags & FRAME_RECURSIVE, 0);
  EXPECT_EQ(found[2].flags & FRAME_RECURSIVE, 0);
}

TEST_F(Inlines, AnExceptionEndsCallsInWhichItIsNotCaught) {
  inlines.put(kMain + 4, kMain + 60, 1);
  inlines.put(kMain + 20, kMain + 44, 2);
  program.code.pads[kMain + 52] = kMain + 36;
  program.call(kMain + 36, kF);
  program.call(kF + 36, kG);
  program.jump_indirect(kG + 36, kMain + 52);
  program.jump(kMain + 88, kMain);
  program.finish(1);
  ASSERT_EQ(of(kFirst).size(), 1U);
  ASSERT_EQ(of(kSecond).size(), 1U);
  EXPECT_EQ(of(kSecond)[0].end_how, CallEnd::UNWIND);
  EXPECT_EQ(of(kFirst)[0].end_how, CallEnd::RETURN);
}

TEST_F(Inlines, ATailCallEndsThemWithTheFunction) {
  inlines.put(kF + 4, kF + 60, 1);
  program.call(kMain + 36, kF);
  program.jump(kF + 36, kG);
  program.ret(kG + 36, kMain + 40);
  program.finish();
  ASSERT_EQ(of(kFirst).size(), 1U);
  EXPECT_EQ(of(kFirst)[0].end_how, CallEnd::TAIL);
  EXPECT_EQ(program.frames.of(kG).parent, of(kFirst)[0].id);
}

TEST_F(Inlines, AGapEndsThem) {
  inlines.put(kMain + 4, kMain + 80, 1);
  program.call(kMain + 36, kF);
  program.machine.on_gap(program.position, program.position);
  ASSERT_EQ(of(kFirst).size(), 1U);
  EXPECT_EQ(of(kFirst)[0].end_how, CallEnd::GAP);
}

TEST_F(Inlines, WhatWasExecutedLastHasThemToo) {
  inlines.put(kF + 8, kF + 20, 1);
  program.call(kMain + 36, kF);
  program.finish(4);
  ASSERT_EQ(of(kFirst).size(), 1U);
  EXPECT_EQ(of(kFirst)[0].end_how, CallEnd::END);
  EXPECT_EQ(of(kFirst)[0].instructions, 2U);
}

TEST_F(Inlines, AnInstructionThatWasInterruptedIsNotExecuted) {
  inlines.put(kMain + 8, kMain + 20, 1);
  program.call(kMain + 36, kF);
  program.go_on(3);
  inlines.put(kF + 12, kF + 20, 3);
  program.async(kF + 12);
  program.enable(kF + 12);
  EXPECT_EQ(of(kFirst).size(), 1U);
  program.branch(BranchKind::RETURN, kF + 36, kMain + 40, 7);
  program.finish();
  EXPECT_EQ(of(kFirst).size(), 2U);
  EXPECT_EQ(of(kFirst)[1].instructions, 2U);
}

// The same branches with and without inlined calls at random addresses.
TEST(InlinesAtRandom, LeaveOtherFramesAsTheyAre) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Tails tails = seed % 2 == 0 ? Tails::NESTED : Tails::REPLACED;
    Program plain(tails);
    run_random(plain, seed, 4000);
    plain.finish();
    Program program(tails);
    GivenInlines inlines;
    inlines.put_random(seed);
    program.machine.set_inlines(&inlines);
    run_random(program, seed, 4000);
    program.finish();
    EXPECT_EQ(program.self_sum(), program.position.instructions) << seed;
    std::vector<Frame> others;
    for (const Frame& frame : program.frames.frames) {
      EXPECT_LE(frame.self_instructions, frame.instructions) << seed;
      if (frame.how != CallKind::INLINED) others.push_back(frame);
    }
    EXPECT_LT(others.size(), program.frames.frames.size());
    ASSERT_EQ(others.size(), plain.frames.frames.size()) << seed;
    for (std::size_t i = 0; i < others.size(); ++i) {
      const Frame& own = others[i];
      const Frame& other = plain.frames.frames[i];
      ASSERT_EQ(
          std::tuple(own.entry_ip, own.call_ip, own.return_ip, own.function, own.how, own.end_how, own.flags,
                     own.instructions, own.branches, own.new_instructions, own.begin.offset, own.end.offset),
          std::tuple(other.entry_ip, other.call_ip, other.return_ip, other.function, other.how, other.end_how,
                     other.flags, other.instructions, other.branches, other.new_instructions,
                     other.begin.offset, other.end.offset))
          << seed << ' ' << i;
    }
    EXPECT_EQ(program.frames.anomalies.size(), plain.frames.anomalies.size()) << seed;
  }
}

TEST(InlinesAtRandom, LieInsideOfTheirParents) {
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    Program program;
    GivenInlines inlines;
    inlines.put_random(seed);
    program.machine.set_inlines(&inlines);
    run_random(program, seed, 2000);
    program.finish();
    std::map<std::uint64_t, const Frame*> by_id;
    for (const Frame& frame : program.frames.frames) by_id[frame.id] = &frame;
    ASSERT_EQ(by_id.size(), program.frames.frames.size()) << seed;
    for (const Frame& frame : program.frames.frames) {
      if (frame.how != CallKind::INLINED) continue;
      ASSERT_NE(frame.flags & FRAME_PARENT, 0) << seed;
      const Frame& parent = *by_id.at(frame.parent);
      EXPECT_EQ(frame.depth, parent.depth + 1) << seed;
      EXPECT_GE(frame.begin.instructions, parent.begin.instructions) << seed;
      EXPECT_LE(frame.end.instructions, parent.end.instructions) << seed;
    }
  }
}

}  // namespace
}  // namespace ptkit::tables::calls
