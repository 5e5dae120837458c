// Edges that come one by one and in bulk end up in one list.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tables/columns/edge_tally.h"

namespace ptkit::tables::columns {
namespace {

using flow::BranchKind;
using flow::EdgeCount;

std::uint64_t count_of(const EdgeTally& tally, std::uint64_t from, std::uint64_t to,
                       std::uint32_t space = 0) {
  std::uint64_t count = 0;
  for (const Edge& edge : tally.edges()) {
    if (edge.from_ip == from && edge.to_ip == to && edge.space == space) count += edge.count;
  }
  return count;
}

std::vector<EdgeCount> many(std::uint64_t from, std::size_t count) {
  std::vector<EdgeCount> edges;
  for (std::size_t i = 0; i < count; ++i) edges.push_back({from, i, i + 1, BranchKind::COND});
  return edges;
}

void add_each(EdgeTally& tally, const std::vector<EdgeCount>& edges, std::uint32_t space) {
  std::vector<std::uint32_t> numbers(edges.size());
  std::iota(numbers.begin(), numbers.end(), 0U);
  std::vector<std::uint64_t> counts;
  for (const EdgeCount& edge : edges) counts.push_back(edge.count);
  tally.add_each({numbers, edges.data(), counts.data()}, space);
  EXPECT_EQ(std::count(counts.begin(), counts.end(), 0U), static_cast<std::ptrdiff_t>(counts.size()));
}

TEST(EdgeTally, SumsEqualEdges) {
  EdgeTally tally;
  tally.add({1, 2, 1, 0, BranchKind::JUMP});
  add_each(tally, {{1, 2, 5, BranchKind::JUMP}, {1, 3, 7, BranchKind::JUMP}}, 0);
  tally.add({1, 3, 1, 0, BranchKind::JUMP});
  add_each(tally, {{1, 3, 2, BranchKind::JUMP}, {4, 4, 1, BranchKind::JUMP}}, 0);
  EXPECT_EQ(tally.edges().size(), 3u);
  EXPECT_EQ(tally.branches(), 17u);
  EXPECT_EQ(count_of(tally, 1, 2), 6u);
  EXPECT_EQ(count_of(tally, 1, 3), 10u);
  EXPECT_EQ(count_of(tally, 4, 4), 1u);
}

TEST(EdgeTally, SeparatesKindsAndSpaces) {
  EdgeTally tally;
  tally.add({1, 2, 1, 0, BranchKind::JUMP});
  tally.add({1, 2, 1, 0, BranchKind::CALL});
  tally.add({1, 2, 1, 1, BranchKind::JUMP});
  add_each(tally, {{1, 2, 1, BranchKind::JUMP}}, 2);
  EXPECT_EQ(tally.edges().size(), 4u);
}

TEST(EdgeTally, GrowsAndStartsAnew) {
  EdgeTally tally;
  for (int round = 0; round < 3; ++round) {
    tally.clear();
    EXPECT_TRUE(tally.edges().empty());
    add_each(tally, many(1, 1000), 0);
    for (std::uint64_t i = 0; i < 2000; ++i) tally.add({1, i, 1, 0, BranchKind::COND});
    ASSERT_EQ(tally.edges().size(), 2000u);
    EXPECT_EQ(count_of(tally, 1, 0), 2u);
    EXPECT_EQ(count_of(tally, 1, 999), 1001u);
    EXPECT_EQ(count_of(tally, 1, 1999), 1u);
  }
}

TEST(EdgeTally, CountsAfterSort) {
  EdgeTally tally;
  tally.add({9, 1, 1, 0, BranchKind::JUMP});
  tally.add({1, 1, 1, 1, BranchKind::JUMP});
  tally.add({1, 2, 1, 0, BranchKind::JUMP});
  tally.sort();
  ASSERT_EQ(tally.edges().size(), 3u);
  EXPECT_EQ(tally.edges()[0].from_ip, 1u);
  EXPECT_EQ(tally.edges()[1].from_ip, 9u);
  EXPECT_EQ(tally.edges()[2].space, 1u);
  tally.add({9, 1, 4, 0, BranchKind::JUMP});
  EXPECT_EQ(tally.edges().size(), 3u);
  EXPECT_EQ(count_of(tally, 9, 1), 5u);
}

TEST(EdgeTally, LeavesOutBranchesToUnknownTargets) {
  EdgeTally tally;
  add_each(tally, {{1, 0, 3, flow::half_edge(flow::BranchKind::CALL_INDIRECT)}, {1, 2, 4}}, 0);
  ASSERT_EQ(tally.edges().size(), 1U);
  EXPECT_EQ(tally.branches(), 4U);
}

}  // namespace
}  // namespace ptkit::tables::columns
