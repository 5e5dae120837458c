#include <gtest/gtest.h>

#include <string>

#include "tables/branches/loop_paths.h"
#include "tables/branches/loop_sums.h"
#include "tables/columns/request.h"
#include "unit/tables/calls/machine.h"

namespace ptkit::tables::branches {
namespace {

using calls::kF;
using calls::kG;
using calls::kMain;
using flow::BranchKind;

constexpr std::int32_t kOuter = 0;
constexpr std::int32_t kInner = 1;

// main() has a loop [0x1010, 0x1040] with the head 0x1010, and in it [0x1020, 0x1030] with the head 0x1020.
// f() has a loop [0x2010, 0x2020].
LoopMap map_of_two() {
  std::vector<Loop> loops{{kMain + 0x10, 0, kNoLoop}, {kMain + 0x20, 0, kOuter}, {kF + 0x10, 0, kNoLoop}};
  std::vector<LoopCode> code{{kMain, kMain + 0xc, 0, 1, kNoLoop},
                             {kMain + 0x10, kMain + 0x1c, 0, 1, kOuter},
                             {kMain + 0x20, kMain + 0x30, 0, 1, kInner},
                             {kMain + 0x34, kMain + 0x40, 0, 1, kOuter},
                             {kMain + 0x44, kMain + 0x80, 0, 1, kNoLoop},
                             {kF, kF + 0xc, 0, 2, kNoLoop},
                             {kF + 0x10, kF + 0x20, 0, 2, 2},
                             {kF + 0x24, kF + 0x40, 0, 2, kNoLoop}};
  return {std::move(loops), std::move(code)};
}

// What a watcher is told, as text: E, R and L with the number of the loop, l where a visit is not whole.
class Told final : public LoopWatcher {
 public:
  void on_enter(Visit& visit, Visit* outer) override {
    text += " E" + std::to_string(visit.loop) + (outer == nullptr ? "" : "<" + std::to_string(outer->loop));
  }
  void on_round(Visit& visit) override { text += " R" + std::to_string(visit.loop); }
  void on_leave(Visit& visit) override {
    text += (visit.is_whole ? " L" : " l") + std::to_string(visit.loop) + "x" + std::to_string(visit.rounds);
  }
  void on_row(const calls::BranchStep&, std::uint8_t, Visit* innermost, const calls::Owner&) override {
    text += innermost == nullptr ? " ." : " " + std::to_string(innermost->loop);
  }

  std::string text;
};

struct Walked {
  explicit Walked(LoopWatcher& watcher, bool has_window = false) : walk(map, watcher, has_window) {
    // A call of main(), so that its frame is open.
    program.branch(BranchKind::CALL, 0x500, kMain);
    walk.before_row(program.step_of(BranchKind::CALL, 0x500, kMain), 3, program.machine, {});
  }
  void row(BranchKind kind, std::uint64_t from, std::uint64_t to) {
    walk.before_row(program.step_of(kind, from, to), static_cast<std::uint8_t>(kind), program.machine, {});
    program.branch(kind, from, to);
    for (; given < program.frames.frames.size(); ++given) walk.on_frame(program.frames.frames[given], {});
  }
  void jump(std::uint64_t from, std::uint64_t to) { row(BranchKind::COND, kMain + from, kMain + to); }
  void end() {
    program.finish();
    for (; given < program.frames.frames.size(); ++given) walk.on_frame(program.frames.frames[given], {});
  }

  LoopMap map = map_of_two();
  calls::Program program;
  LoopWalk walk;
  std::size_t given = 0;
};

TEST(LoopWalk, CountsRoundsOfNestedLoops) {
  Told told;
  Walked walked(told);
  walked.jump(0x30, 0x20);  // straight from the begin through both heads, and back to the inner one
  walked.jump(0x30, 0x34);  // leaves that
  walked.jump(0x40, 0x10);
  walked.jump(0x18, 0x38);  // around the inner loop
  walked.jump(0x40, 0x44);
  walked.row(BranchKind::RETURN, kMain + 0x50, 0x504);
  EXPECT_EQ(told.text, " . E0 E1<0 1 R1 1 L1x2 0 R0 0 0 L0x2 .");
}

TEST(LoopWalk, IsNotDisturbedByCallsAndRecursion) {
  Told told;
  Walked walked(told);
  walked.row(BranchKind::CALL, kMain + 0x14, kMain);
  walked.row(BranchKind::CALL, kMain + 0x14, kF);
  walked.row(BranchKind::COND, kF + 0x20, kF + 0x10);
  walked.row(BranchKind::RETURN, kF + 0x30, kMain + 0x18);
  walked.jump(0x40, 0x10);  // of the inner frame
  walked.jump(0x18, 0x44);
  walked.row(BranchKind::RETURN, kMain + 0x50, kMain + 0x18);
  walked.jump(0x40, 0x44);
  walked.row(BranchKind::RETURN, kMain + 0x50, 0x504);
  EXPECT_EQ(told.text, " . E0 0 E0 0 E2 2 R2 L2x2 . E1<0 L1x1 0 R0 0 L0x2 . E1<0 L1x1 0 L0x1 .");
}

TEST(LoopWalk, InterruptedInstructionsAreExecutedOnce) {
  Told told;
  Walked walked(told);
  walked.jump(0x0c, 0x10);
  walked.row(BranchKind::ASYNC, kMain + 0x10, kG);  // the head is not executed before
  walked.row(BranchKind::IRET, kG + 0x10, kMain + 0x10);
  walked.row(BranchKind::ASYNC, kMain + 0x18, kG);
  walked.row(BranchKind::IRET, kG + 0x10, kMain + 0x18);
  walked.jump(0x1c, 0x10);
  walked.jump(0x1c, 0x44);
  walked.row(BranchKind::RETURN, kMain + 0x50, 0x504);
  EXPECT_EQ(told.text, " . . . . E0 0 . 0 R0 0 L0x2 .");
}

TEST(LoopWalk, VisitsWithoutABeginOrAnEndAreNotWhole) {
  Told told;
  Walked walked(told);
  walked.row(BranchKind::JUMP, kMain + 0x4, kMain + 0x38);  // no way into the loop
  walked.jump(0x40, 0x10);
  walked.jump(0x1c, 0x44);
  walked.jump(0x48, 0x10);
  walked.jump(0x1c, 0x10);
  walked.end();
  EXPECT_EQ(told.text, " . . E0 0 R0 0 l0x1 . E0 0 l0x1");
}

TEST(LoopWalk, AnUnknownWayIntoABranchLeavesNoVisitWhole) {
  Told told;
  Walked walked(told);
  walked.jump(0x1c, 0x10);
  walked.walk.before_row({}, columns::MARK_DISABLED, walked.program.machine, {});
  walked.jump(0x1c, 0x44);
  walked.row(BranchKind::RETURN, kMain + 0x50, 0x504);
  EXPECT_EQ(told.text, " . E0 0 . 0 l0x1 .");
}

TEST(LoopWalk, RowsBeforeTheWindowDoNotCount) {
  Told told;
  Walked walked(told, true);
  walked.jump(0x1c, 0x10);
  EXPECT_EQ(told.text, "");
  walked.walk.on_window({}, 0);
  walked.jump(0x1c, 0x10);
  walked.jump(0x1c, 0x44);
  walked.row(BranchKind::RETURN, kMain + 0x50, 0x504);
  EXPECT_EQ(told.text, " E0 0 R0 0 L0x2 .");
}

TEST(LoopWalk, StubsBelongToNoLoop) {
  Told told;
  Walked walked(told);
  walked.program.code.flags[kG] = calls::CODE_STUB;
  walked.row(BranchKind::CALL, kMain + 0x14, kG);
  walked.row(BranchKind::JUMP_INDIRECT, kG + 4, kF);
  walked.row(BranchKind::RETURN, kF + 8, kMain + 0x18);
  walked.jump(0x1c, 0x10);
  walked.jump(0x1c, 0x44);
  walked.row(BranchKind::RETURN, kMain + 0x50, 0x504);
  EXPECT_EQ(told.text, " . E0 0 . . 0 R0 0 L0x2 .");
}

TEST(LoopSums, KeepsCutVisitsApart) {
  const LoopMap map = map_of_two();
  LoopSums sums(map.size());
  Walked walked(sums);
  for (int round = 0; round < 3; ++round) walked.jump(0x1c, 0x10);
  walked.jump(0x1c, 0x44);
  walked.jump(0x48, 0x10);
  walked.jump(0x1c, 0x10);
  walked.end();
  LoopTrips& outer = sums.sums()[kOuter];
  EXPECT_EQ(outer.trips.count(), 1U);
  EXPECT_EQ(outer.trips.max(), 4U);
  EXPECT_EQ(outer.rounds, 4U);
  EXPECT_EQ(outer.cut, 1U);
  EXPECT_EQ(sums.sums()[kInner].trips.count(), 0U);
}

TEST(LoopPaths, CountsPathsFromHeadToHead) {
  const LoopMap map = map_of_two();
  LoopPaths paths(map, {1, 0, 0});
  Walked walked(paths);
  walked.jump(0x1c, 0x38);  // around the inner loop
  walked.jump(0x40, 0x10);
  walked.jump(0x1c, 0x38);
  walked.jump(0x40, 0x10);
  walked.jump(0x30, 0x20);  // through the inner loop, which is one step
  walked.jump(0x30, 0x34);
  walked.jump(0x40, 0x44);
  walked.row(BranchKind::RETURN, kMain + 0x50, 0x504);
  const auto& nodes = paths.nodes();
  std::uint64_t rounds = 0;
  std::uint64_t exits = 0;
  for (const PathNode& node : nodes) {
    rounds += node.rounds;
    exits += node.exits;
  }
  EXPECT_EQ(rounds, 2U);
  EXPECT_EQ(exits, 1U);
  ASSERT_EQ(nodes.size(), 7U);  // none, root, others, and 2 steps of both paths
  EXPECT_EQ(nodes[4].rounds, 2U);
  EXPECT_EQ(nodes[4].step.from_ip, kMain + 0x40);
  EXPECT_EQ(nodes[3].step.to_ip, kMain + 0x38);
  EXPECT_EQ(nodes[5].step.kind, StepKind::LOOP);
  EXPECT_EQ(nodes[5].step.to_ip, kMain + 0x20);
  EXPECT_EQ(nodes[6].exits, 1U);
  EXPECT_EQ(nodes[6].parent, 5U);
}

TEST(LoopPaths, PathsBeyondTheLimitAreCountedTogether) {
  const LoopMap map = map_of_two();
  LoopPaths paths(map, {1, 1, 1});
  Walked walked(paths);
  const std::size_t rounds = LoopPaths::kMostNodes + 100;
  for (std::size_t i = 0; i < rounds; ++i) {
    walked.row(BranchKind::CALL_INDIRECT, kMain + 0x14, 0x10'0000 + i * 0x100);
    walked.row(BranchKind::RETURN, 0x10'0000 + i * 0x100, kMain + 0x18);
    walked.row(BranchKind::JUMP, kMain + 0x1c, kMain + 0x10);
  }
  const auto& nodes = paths.nodes();
  EXPECT_LE(nodes.size(), LoopPaths::kMostNodes + 7);
  EXPECT_EQ(nodes[2].rounds, 99U);  // of paths without a node; the last one has not ended
}

}  // namespace
}  // namespace ptkit::tables::branches
