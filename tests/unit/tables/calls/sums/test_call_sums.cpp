// Sums over cells are those over each function, entry and module.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "tables/calls/sums/call_sums.h"
#include "unit/tables/calls/random_branches.h"

namespace ptkit::tables::calls {
namespace {

using tables::columns::Batch;

constexpr std::int64_t kThreads = 3;  // of random branches
constexpr std::int32_t kFiles = 3;

// Functions with the numbers of GivenCode, in a few files and in memory, and those of threads.
FunctionTable functions_in_files() {
  FunctionTable table;
  while (table.size() < GivenCode::kFirstThread) {
    const auto number = table.size() - kFirstFunction;
    Function function{.entry_ip = number * GivenCode::kSize, .space = 0};
    function.file = static_cast<std::int32_t>(number % (kFiles + 1)) - 1;
    function.offset = number;
    if (function.file < 0) function.memory_base = number / 8;
    static_cast<void>(table.number(function));
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

// By one of MoreGroups::kBy alone.
void give_by(std::size_t by, const MoreGroups& groups, const Program& program, FunctionTotals& totals) {
  for (std::size_t i = 0; i < program.frames.frames.size(); ++i) {
    Frame frame = program.frames.frames[i];
    frame.group = groups.cell(frame.cell).groups[by];
    frame.new_instructions = frame.more[by].new_instructions;
    frame.new_branches = frame.more[by].new_branches;
    frame.flags &= static_cast<std::uint16_t>(~FRAME_RECURSIVE);
    if (frame.more[by].is_recursive) frame.flags |= std::uint16_t{FRAME_RECURSIVE};
    totals.on_frame(frame, program.frames.owners[i]);
  }
}

void expect_equal(Batch& some, Batch& others) {
  ASSERT_EQ(some.rows(), others.rows());
  some.shrink();
  others.shrink();
  const auto infos = tables::columns::columns_of(some.table());
  for (std::size_t i = 0; i < infos.size(); ++i) {
    ASSERT_EQ(some.is_uniform(i), others.is_uniform(i)) << infos[i].name;
    if (some.is_uniform(i)) {
      EXPECT_EQ(some.uniform_value(i), others.uniform_value(i)) << infos[i].name;
      continue;
    }
    const std::size_t bytes = some.rows() * tables::columns::cell_size(infos[i].type);
    EXPECT_EQ(std::memcmp(some.buffer(i).data(), others.buffer(i).data(), bytes), 0) << infos[i].name;
  }
}

// Window, tail calls, and whether functions are hidden where they are above others.
using Case = std::tuple<std::optional<RowWindow>, Tails, bool>;

class CallSumsOf : public testing::TestWithParam<Case> {};

TEST_P(CallSumsOf, RandomBranchesEqualThoseOfEachGroup) {
  const auto& [window, tails, hides] = GetParam();
  const auto is_hidden = [](std::uint32_t function) { return function % 5 == 0; };
  const FunctionTable functions = functions_in_files();
  FunctionTotals by_function({});
  std::array<FunctionTotals, kMoreGroups> by_group{FunctionTotals({}), FunctionTotals({})};
  CallTree tree;
  CallSums sums({}, CallSums::Tree::SMALL);
  for (std::uint32_t seed = 0; seed < 12; ++seed) {  // as streams
    MoreGroups more(functions);
    if (hides) more.hide(is_hidden);
    Program program(tails, &more);
    run_random(program, seed, 2000, window);
    if (!program.machine.has_ended()) program.finish();
    CallSums one({}, CallSums::Tree::SMALL);
    give(program, one);
    sums.add_all(std::move(one), functions, more);
    CallTree contexts;
    give(program, contexts);
    tree.add_all(contexts, functions);
    FunctionTotals functions_of_one({});
    give(program, functions_of_one);
    by_function.add_all(functions_of_one, FrameGroups(By::FUNCTION, functions));
    for (std::size_t i = 0; i < kMoreGroups; ++i) {
      FunctionTotals groups_of_one({});
      give_by(i, more, program, groups_of_one);
      by_group[i].add_all(groups_of_one, more.groups(i));
    }
  }
  const auto rows = sums.functions(By::FUNCTION, tables::columns::kAllColumns);
  EXPECT_GT(rows->rows(), 3U);
  expect_equal(*rows, *by_function.rows(tables::columns::kAllColumns));
  for (std::size_t i = 0; i < kMoreGroups; ++i) {
    const auto groups = sums.functions(MoreGroups::kBy[i], tables::columns::kAllColumns);
    EXPECT_GT(groups->rows(), 3U);
    expect_equal(*groups, *by_group[i].rows(tables::columns::kAllColumns));
  }
  ASSERT_TRUE(sums.has_tree());
  expect_equal(*sums.tree(tables::columns::kAllColumns), *tree.rows(tables::columns::kAllColumns));
}

INSTANTIATE_TEST_SUITE_P(Cases, CallSumsOf,
                         testing::Combine(testing::Values(std::nullopt, RowWindow{500, 1500},
                                                          RowWindow{300, SIZE_MAX}),
                                          testing::Values(Tails::NESTED, Tails::REPLACED), testing::Bool()));

TEST(CallSums, DropLargeTreesThatWereNotAskedFor) {
  constexpr std::size_t kMost = 50;
  const FunctionTable functions = functions_in_files();
  for (const auto tree : {CallSums::Tree::NONE, CallSums::Tree::SMALL, CallSums::Tree::WHOLE}) {
    MoreGroups more(functions);
    Program program(Tails::NESTED, &more);
    run_random(program, 1, 3000);
    program.finish();
    CallSums one({}, tree, kMost);
    give(program, one);
    CallSums all({}, tree, kMost);
    all.add_all(std::move(one), functions, more);
    EXPECT_EQ(all.has_tree(), tree == CallSums::Tree::WHOLE);
    EXPECT_GT(all.functions(By::FUNCTION, tables::columns::kAllColumns)->rows(), 3U);
  }
}

TEST(CallSums, DropTreesThatGetLargeByAllStreams) {
  const FunctionTable functions = functions_in_files();
  std::optional<CallSums> all;
  std::size_t dropped = 0;
  for (const std::size_t most : {std::size_t{1000}, std::size_t{1U << 20U}}) {
    all.emplace(tables::columns::Selection{}, CallSums::Tree::SMALL, most);
    for (std::uint32_t seed = 0; seed < 8; ++seed) {
      MoreGroups more(functions);
      Program program(Tails::NESTED, &more);
      run_random(program, seed, 3000);
      program.finish();
      CallSums one({}, CallSums::Tree::SMALL);
      give(program, one);
      all->add_all(std::move(one), functions, more);
    }
    if (!all->has_tree()) ++dropped;
  }
  EXPECT_EQ(dropped, 1U);
  EXPECT_TRUE(all->has_tree());
}

}  // namespace
}  // namespace ptkit::tables::calls
