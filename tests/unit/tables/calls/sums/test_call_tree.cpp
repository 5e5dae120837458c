#include <gtest/gtest.h>

#include "tables/calls/sums/call_tree.h"
#include "tables/calls/sums/function_totals.h"
#include "unit/tables/calls/random_branches.h"

namespace ptkit::tables::calls {
namespace {

// main() calls f() twice, which calls g() and itself.
void run(Program& program) {
  for (const std::uint64_t at : {std::uint64_t{0x10}, std::uint64_t{0x20}}) {
    program.call(kMain + at, kF);
    program.call(kF + 0x10, kG);
    program.ret(kG + 0x10, kF + 0x14);
    program.call(kF + 0x20, kF);
    program.call(kF + 0x10, kG);
    program.ret(kG + 0x10, kF + 0x14);
    program.ret(kF + 0x30, kF + 0x24);
    program.ret(kF + 0x30, kMain + at + 4);
  }
  program.finish();
}

template <typename Sink>
void give(const Program& program, Sink& sink) {
  for (std::size_t i = 0; i < program.frames.frames.size(); ++i)
    sink.on_frame(program.frames.frames[i], program.frames.owners[i]);
}

// Functions with the numbers of GivenCode.
FunctionTable functions_of(std::uint32_t count) {
  FunctionTable table;
  while (table.size() < count) {
    const auto entry = static_cast<std::uint64_t>(table.size() - kFirstFunction) * GivenCode::kSize;
    static_cast<void>(table.number({.entry_ip = entry, .space = 0, .file = -1, .offset = 0}));
  }
  return table;
}

TEST(CallTree, HasANodeForEachChainOfFunctions) {
  using enum tables::columns::Column;
  Program program;
  run(program);
  CallTree one;
  give(program, one);
  CallTree all;
  const FunctionTable functions = functions_of(0x100);
  all.add_all(one, functions);
  all.add_all(one, functions);
  const auto rows = all.rows(tables::columns::kAllColumns);
  ASSERT_EQ(rows->rows(), 5U);
  const auto* const entries = rows->cells<call_tree_entry_ip>();
  const auto* const depths = rows->cells<call_tree_depth>();
  const auto* const counts = rows->cells<call_tree_count>();
  const auto* const instructions = rows->cells<call_tree_instructions>();
  const std::vector<std::uint64_t> order{kMain, kF, kF, kG, kG};
  EXPECT_EQ(std::vector<std::uint64_t>(entries, entries + 5), order);
  EXPECT_EQ(std::vector<std::int32_t>(depths, depths + 5), (std::vector<std::int32_t>{0, 1, 2, 3, 2}));
  EXPECT_EQ(std::vector<std::uint64_t>(counts, counts + 5), (std::vector<std::uint64_t>{0, 4, 4, 4, 4}));
  EXPECT_EQ(rows->cells<call_tree_begin_unseen>()[0], 2U);  // main() had begun before
  EXPECT_EQ(instructions[0], 2 * program.position.instructions);
  EXPECT_EQ(instructions[3], 40U);
}

// The cells of all columns, one after the other.
std::vector<std::uint64_t> cells_of(const CallTree& tree, const FunctionTable& functions) {
  using enum tables::columns::Column;
  CallTree all;
  all.add_all(tree, functions);
  const auto rows = all.rows(tables::columns::kAllColumns);
  std::vector<std::uint64_t> cells;
  const auto add = [&](const auto* column) {
    for (std::size_t row = 0; row < rows->rows(); ++row)
      cells.push_back(static_cast<std::uint64_t>(column[row]));
  };
  add(rows->cells<call_tree_entry_ip>());
  add(rows->cells<call_tree_depth>());
  add(rows->cells<call_tree_count>());
  add(rows->cells<call_tree_begin_unseen>());
  add(rows->cells<call_tree_instructions>());
  add(rows->cells<call_tree_self_instructions>());
  add(rows->cells<call_tree_branches>());
  add(rows->cells<call_tree_flags>());
  return cells;
}

TEST(CallTree, IsTheSameWithTheCallersOfFrames) {
  const FunctionTable functions = functions_of(0x3000);
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    Program program;
    CallTree tree;
    program.frames.next = &tree;
    program.machine.give_callers();
    run_mixed(program, seed);
    CallTree from_leaves({}, false);
    give(program, from_leaves);
    const std::vector<std::uint64_t> cells = cells_of(tree, functions);
    EXPECT_GT(cells.size(), 800U);
    ASSERT_EQ(cells, cells_of(from_leaves, functions)) << "seed " << seed;
  }
}

// Two threads with deep stacks take turns after each call.
TEST(CallTree, TakesNoLongerForDeepStacksThatTakeTurns) {
  constexpr std::int64_t kDepth = 3000;
  const Owner threads[] = {{0, 1, 1, 0}, {0, 1, 2, 0}};
  Program program;
  CallTree tree;
  program.frames.next = &tree;
  program.machine.give_callers();
  for (const Owner& thread : threads) {
    program.machine.on_owner(thread, program.position);
    for (std::int64_t i = 0; i < kDepth; ++i) program.call(kF + 0x10, kF);
  }
  for (std::size_t i = 0; i < 20'000; ++i) {
    program.machine.on_owner(threads[i % 2], program.position);
    program.call(kF + 0x20, kG);
    program.ret(kG + 0x10, kF + 0x24);
  }
  program.finish();
  CallTree from_leaves({}, false);
  give(program, from_leaves);
  const FunctionTable functions = functions_of(0x3000);
  EXPECT_EQ(cells_of(tree, functions), cells_of(from_leaves, functions));
}

TEST(FunctionTotals, CountRecursionOnce) {
  using enum tables::columns::Column;
  Program program;
  run(program);
  FunctionTotals one({});
  give(program, one);
  const FunctionTable functions = functions_of(0x100);
  const FrameGroups groups(By::FUNCTION, functions);
  FunctionTotals all({});
  all.add_all(one, groups);
  const auto rows = all.rows(tables::columns::kAllColumns);
  ASSERT_EQ(rows->rows(), 3U);
  EXPECT_EQ(rows->cells<functions_entry_ip>()[1], kF);
  EXPECT_EQ(rows->cells<functions_count>()[1], 4U);
  EXPECT_EQ(rows->cells<functions_instructions>()[1], 2U * 70U);
  EXPECT_EQ(rows->cells<functions_self_instructions>()[1], 4U * 10U + 4U * 10U + 2U * 10U);
}

}  // namespace
}  // namespace ptkit::tables::calls
