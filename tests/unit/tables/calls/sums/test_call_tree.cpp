#include <gtest/gtest.h>

#include "tables/calls/sums/call_tree.h"
#include "tables/calls/sums/function_totals.h"
#include "unit/tables/calls/machine.h"

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
