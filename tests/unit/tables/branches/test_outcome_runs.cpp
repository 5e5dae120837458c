#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "tables/branches/outcome_runs.h"

namespace ptkit::tables::branches {
namespace {

constexpr std::uint64_t kBranch = 0x1000;

void add(OutcomeRuns& runs, std::string_view outcomes, std::uint64_t ip = kBranch) {
  for (const char outcome : outcomes) runs.add(ip, outcome == '1');
}

TEST(OutcomeRuns, CountsRunsAndTheLongestOnes) {
  OutcomeRuns runs;
  runs.follow(1, 1, 0, false);
  add(runs, "1110110001");
  const auto found = runs.take();
  ASSERT_EQ(found.size(), 1U);
  const BranchRuns& one = found[0];
  EXPECT_EQ(one.executions[1], 6U);
  EXPECT_EQ(one.executions[0], 4U);
  EXPECT_EQ(one.lengths[1].count() + one.lengths[0].count(), 5U);
  EXPECT_EQ(one.lengths[1].max(), 3U);
  EXPECT_EQ(one.lengths[0].max(), 3U);
  EXPECT_EQ(one.cut, 0U);
  EXPECT_DOUBLE_EQ(one.run_entropy(), std::log2(5.0));  // five different runs
}

TEST(OutcomeRuns, BranchThatRepeatsItselfHasNoEntropy) {
  OutcomeRuns runs;
  runs.follow(1, 1, 0, false);
  add(runs, "1111");
  const auto found = runs.take();
  EXPECT_EQ(found.at(0).run_entropy(), 0.0);
  EXPECT_FALSE(std::signbit(found.at(0).run_entropy()));
}

TEST(OutcomeRuns, ThreadsAndSpacesHaveRunsOfTheirOwn) {
  OutcomeRuns runs;
  runs.follow(1, 1, 0, false);
  add(runs, "11");
  runs.follow(1, 2, 0, false);
  add(runs, "11");
  runs.follow(1, 1, 0, false);
  add(runs, "1");
  runs.follow(2, 1, 7, false);
  add(runs, "0");
  const auto found = runs.take();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].space, 0U);
  EXPECT_EQ(found[0].executions[1], 5U);
  EXPECT_EQ(found[0].lengths[1].count(), 2U);
  EXPECT_EQ(found[0].lengths[1].max(), 3U);
  EXPECT_EQ(found[1].space, 7U);
}

TEST(OutcomeRuns, RunsEndWhereRowsAreMissing) {
  OutcomeRuns runs;
  runs.follow(1, 1, 0, false);
  add(runs, "11");
  add(runs, "0", kBranch + 8);  // never again: what is missing may have had it
  runs.cut();
  add(runs, "1");
  runs.follow(1, 2, 0, false);
  runs.follow(1, 1, 0, true);
  add(runs, "10");
  const auto found = runs.take();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].lengths[1].count(), 3U);
  EXPECT_EQ(found[0].lengths[1].max(), 2U);
  EXPECT_EQ(found[0].cut, 2U);
  EXPECT_EQ(found[1].cut, 1U);
}

TEST(OutcomeRuns, ManyBranchesKeepTheirRuns) {
  OutcomeRuns runs;
  runs.follow(1, 1, 0, false);
  constexpr std::uint64_t kBranches = 5000;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < kBranches; ++i) runs.add(i * 4, i % 2 == 0);
  }
  const auto found = runs.take();
  ASSERT_EQ(found.size(), kBranches);
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].ip, i * 4);
    ASSERT_EQ(found[i].lengths[i % 2 == 0 ? 1 : 0].max(), 3U);
    ASSERT_EQ(found[i].lengths[0].count() + found[i].lengths[1].count(), 1U);
  }
}

TEST(OutcomeRuns, EntropyOfManyLengthsIsALowerBoundInBoundedMemory) {
  OutcomeRuns runs;
  runs.follow(1, 1, 0, false);
  constexpr std::uint64_t kLengths = 70'000;  // more than are counted exactly
  const std::uint64_t before = runs.bytes();
  for (std::uint64_t length = 1; length <= kLengths; ++length) {
    for (std::uint64_t i = 0; i < length % 20'000 + 1; ++i) runs.add(kBranch, true);
    runs.add(kBranch, false);
  }
  EXPECT_LT(runs.bytes() - before, 1U << 20U);
  const auto found = runs.take();
  EXPECT_FALSE(found.at(0).lengths[1].exact());
  EXPECT_EQ(found[0].lengths[1].max(), 20'000U);
  const double exact = 1.0 + std::log2(20'000.0) / 2;  // about
  EXPECT_LT(found[0].run_entropy(), exact);
  EXPECT_GT(found[0].run_entropy(), 3.0);
}

TEST(BranchRuns, SumsAreThoseOfBoth) {
  OutcomeRuns first;
  OutcomeRuns second;
  first.follow(1, 1, 0, false);
  second.follow(1, 2, 0, false);
  add(first, "110");
  add(second, "111");
  BranchRuns sum = first.take().at(0);
  sum.add_all(second.take().at(0));
  EXPECT_EQ(sum.executions[1], 5U);
  EXPECT_EQ(sum.executions[0], 1U);
  EXPECT_EQ(sum.lengths[1].count(), 2U);
  EXPECT_EQ(sum.lengths[1].max(), 3U);
}

}  // namespace
}  // namespace ptkit::tables::branches
