// Sums over the rows of a table of calls are those over the frames as they end.
#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

#include "tables/calls/frame_rows.h"
#include "tables/calls/sums/call_sums.h"
#include "tables/calls/sums/call_tree.h"
#include "tables/calls/sums/function_totals.h"
#include "tables/calls/sums/table_frames.h"
#include "unit/tables/calls/random_branches.h"

namespace ptkit::tables::calls {
namespace {

using tables::columns::Batch;
using tables::columns::Column;

constexpr std::int64_t kThreads = 3;  // of random branches
constexpr std::int32_t kFiles = 3;

// Functions with the numbers of GivenCode, in a few files, and those of threads.
FunctionTable functions_in_files() {
  FunctionTable table;
  while (table.size() < GivenCode::kFirstThread) {
    const auto number = table.size() - kFirstFunction;
    static_cast<void>(table.number({.entry_ip = number * GivenCode::kSize,
                                    .space = 0,
                                    .file = static_cast<std::int32_t>(number) % kFiles,
                                    .offset = number}));
  }
  for (std::int64_t thread = 0; thread < kThreads; ++thread)
    static_cast<void>(table.number({.file = -1, .thread = thread}));
  return table;
}

template <typename Sink>
void give(const Program& program, Sink& sink) {
  for (std::size_t i = 0; i < program.frames.frames.size(); ++i)
    sink.on_frame(program.frames.frames[i], program.frames.owners[i]);
}

// The rows of calls() of a program, and what is noted of them.
class Rows {
 public:
  Rows(const Program& program, const FunctionTable& functions) {
    FrameTable table({}, tables::columns::kAllColumns, 0);
    give(program, table);
    batch_ = table.take(0, functions, notes);
    for (std::size_t i = 0; i < batch_->runs().size(); ++i) {
      const bool is_last = i + 1 == batch_->runs().size();
      const std::size_t end = is_last ? batch_->rows() : batch_->runs()[i + 1].row;
      spaces_.resize(end, batch_->runs()[i].space);
    }
  }
  [[nodiscard]] CallRows view() {
    using enum Column;
    CallRows rows;
    rows.rows = batch_->rows();
#define PT_CALL_CELL(name) rows.name = cells<calls_##name>();
#include "tables/calls/sums/sums.def"
    rows.function = cells<calls_function>();
    rows.space = {reinterpret_cast<const std::byte*>(spaces_.data()), sizeof(trace::SpaceId)};
    return rows;
  }

  FrameIndex notes;

 private:
  template <Column C>
  [[nodiscard]] CellView<tables::columns::Cell<C>> cells() {
    static constexpr tables::columns::Cell<C> kZero = 0;
    const auto* const first = batch_->cells<C>();
    if (first == nullptr) return {reinterpret_cast<const std::byte*>(&kZero), 0};
    return {reinterpret_cast<const std::byte*>(first), sizeof *first};
  }

  std::unique_ptr<Batch> batch_;
  std::vector<trace::SpaceId> spaces_;
};

template <Column... COLUMNS>
void expect_equal(Batch& some, Batch& others) {
  ASSERT_EQ(some.rows(), others.rows());
  const auto all = [&]<Column C>() {
    const auto* const a = some.cells<C>();
    const auto* const b = others.cells<C>();
    EXPECT_TRUE(std::equal(a, a + some.rows(), b)) << tables::columns::index_of(C);
  };
  (all.template operator()<COLUMNS>(), ...);
}

class TableFramesBy : public testing::TestWithParam<By> {};

TEST_P(TableFramesBy, SumUpRandomBranches) {
  using enum Column;
  std::vector<std::uint32_t> seeds(20);
  std::iota(seeds.begin(), seeds.end(), 0U);
  seeds.push_back(230);  // a stack goes on in another address space, with frames that were entered before
  for (const std::uint32_t seed : seeds) {
    const FunctionTable functions = functions_in_files();
    MoreGroups groups(functions);
    Program plain;
    run_random(plain, seed, 3000);
    plain.finish();
    Program grouped(Tails::NESTED, &groups);
    run_random(grouped, seed, 3000);
    grouped.finish();
    CallSums one({}, CallSums::Tree::NONE);
    give(grouped, one);
    CallSums all({}, CallSums::Tree::NONE);
    all.add_all(std::move(one), functions, groups);
    Rows rows(plain, functions);
    const TableFrames frames(rows.notes, rows.view());
    EXPECT_TRUE(frames.is_whole());
    const auto found = frames.functions(GetParam(), Tails::NESTED, tables::columns::kAllColumns);
    const auto expected = all.functions(GetParam(), tables::columns::kAllColumns);
    expect_equal<functions_file, functions_count, functions_instructions, functions_self_instructions,
                 functions_branches, functions_p50_instructions, functions_p99_instructions,
                 functions_max_instructions>(*found, *expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Groups, TableFramesBy, testing::Values(By::FUNCTION, By::ENTRY, By::MODULE));

TEST(TableFrames, MakeTheTreeOfRandomBranches) {
  using enum Column;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const FunctionTable functions = functions_in_files();
    Program program;
    run_random(program, seed, 3000);
    program.finish();
    CallTree one;
    give(program, one);
    CallTree all;
    all.add_all(one, functions);
    Rows rows(program, functions);
    const TableFrames frames(rows.notes, rows.view());
    EXPECT_TRUE(frames.has_callers());
    const auto found = frames.tree(tables::columns::kAllColumns);
    const auto expected = all.rows(tables::columns::kAllColumns);
    expect_equal<call_tree_parent, call_tree_depth, call_tree_entry_ip, call_tree_count,
                 call_tree_instructions, call_tree_self_instructions, call_tree_branches>(*found, *expected);
  }
}

TEST(TableFrames, EndAtJumpsOfReplacedTailCalls) {
  using enum Column;
  const FunctionTable functions = functions_in_files();
  const auto run = [](Program& program) {
    for (const std::uint64_t at : {std::uint64_t{0x10}, std::uint64_t{0x20}}) {
      program.call(kMain + at, kF);
      program.jump(kF + 0x10, kG);
      program.call(kG + 0x10, kH);
      program.ret(kH + 0x10, kG + 0x14);
      program.jump_indirect(kG + 0x20, kF);
      program.ret(kF + 0x20, kMain + at + 4);
    }
    // Returns to functions, and into one: what follows is none of those that have ended.
    program.call(kMain + 0x30, kF);
    program.ret(kF + 0x10, kG);
    program.ret(kG + 0x10, kH);
    program.ret(kH + 0x10, 0x5044);
    program.ret(0x5050, kMain + 0x34);
    program.finish();
  };
  Program nested;
  run(nested);
  Program replaced(Tails::REPLACED);
  run(replaced);
  FrameGroups groups(By::FUNCTION, functions);
  FunctionTotals one({});
  give(replaced, one);
  FunctionTotals all({});
  all.add_all(one, groups);
  Rows rows(nested, functions);
  const auto found = TableFrames(rows.notes, rows.view())
                         .functions(By::FUNCTION, Tails::REPLACED, tables::columns::kAllColumns);
  const auto expected = all.rows(tables::columns::kAllColumns);
  expect_equal<functions_entry_ip, functions_count, functions_instructions, functions_self_instructions,
               functions_branches, functions_p50_instructions, functions_max_instructions>(*found, *expected);
}

}  // namespace
}  // namespace ptkit::tables::calls
