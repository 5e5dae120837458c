#include <gtest/gtest.h>

#include "tables/columns/rows/edge_phases.h"

namespace ptkit::tables::columns {
namespace {

constexpr std::uint8_t kBoth = flow::FROM_KNOWN | flow::TO_KNOWN;

flow::Branch branch(std::uint64_t from, std::uint64_t to, std::uint8_t flags = kBoth) {
  flow::Branch row;
  row.from_ip = from;
  row.to_ip = to;
  row.flags = flags;
  return row;
}

Request edges_of(std::vector<std::uint64_t> bins) {
  Request request;
  request.table = TableId::edges;
  request.bins = std::move(bins);
  return request;
}

struct Row {
  std::uint64_t from = 0;
  std::uint64_t count = 0;
  std::uint32_t bin = 0;
  bool operator==(const Row&) const = default;
};

std::vector<Row> rows_of(EdgePhases& edges) {
  Batch batch(TableId::edges, kAllColumns);
  EXPECT_TRUE(edges.move_to(batch));
  std::vector<Row> rows;
  for (std::size_t i = 0; i < batch.rows(); ++i) {
    const auto* const bins = batch.cells<Column::edges_bin>();
    rows.push_back({batch.cells<Column::edges_from_ip>()[i], batch.counts<Column::edges_count>()[i],
                    bins == nullptr ? 0 : bins[i]});
  }
  return rows;
}

TEST(EdgePhases, LimitsBeginPhases) {
  const Request request = edges_of({10, 20, 30});
  EdgePhases edges(request);
  for (const std::uint64_t position : {9u, 10u, 19u, 20u, 29u, 30u}) edges.add(branch(1, 2), 0, position);
  EXPECT_EQ(rows_of(edges), (std::vector<Row>{{1, 2, 0}, {1, 2, 1}}));
  EXPECT_TRUE(rows_of(edges).empty()) << "the edges were moved";
}

TEST(EdgePhases, WithoutLimitsThereIsOnePhase) {
  const Request request = edges_of({});
  EdgePhases edges(request);
  edges.add(branch(1, 2), 0, 0);
  edges.add(branch(1, 2), 0, UINT64_MAX);
  edges.add(branch(3, 0, flow::FROM_KNOWN), 0, 0);  // one end is not known
  EXPECT_EQ(rows_of(edges), (std::vector<Row>{{1, 2, 0}}));
}

TEST(EdgePhases, CountsInBulkAreOfTheChosenKinds) {
  Request request = edges_of({10, 20});
  request.selection.branches.kinds = std::uint32_t{1} << static_cast<unsigned>(flow::BranchKind::CALL);
  EdgePhases edges(request);
  const std::vector<flow::EdgeCount> counts{{1, 2, 5, flow::BranchKind::CALL},
                                            {3, 4, 6, flow::BranchKind::JUMP}};
  edges.add(counts, 0, 0);
  edges.add(counts, 0, UINT32_MAX);  // before the first phase
  EXPECT_EQ(rows_of(edges), (std::vector<Row>{{1, 5, 0}}));
}

TEST(EdgePhases, HalfEdgesAreCountedOnRequest) {
  constexpr auto kKind = flow::BranchKind::CALL_INDIRECT;
  const std::vector<flow::EdgeCount> counts{{1, 0, 5, flow::half_edge(kKind)}, {1, 2, 6, kKind}};
  flow::Branch half = branch(1, 0, flow::FROM_KNOWN);
  half.kind = kKind;
  for (const bool wanted : {false, true}) {
    Request request = edges_of({});
    request.half_edges = wanted;
    EdgePhases edges(request);
    edges.add(half, 0, 0);
    edges.add(branch(3, 0, flow::FROM_KNOWN), 0, 0);  // of another kind
    edges.add(counts, 0, 0);
    Batch batch(TableId::edges, kAllColumns);
    ASSERT_TRUE(edges.move_to(batch));
    ASSERT_EQ(batch.rows(), wanted ? 2U : 1U);
    EXPECT_EQ(batch.cells<Column::edges_flags>()[batch.rows() - 1], flow::TO_KNOWN);
    EXPECT_EQ(batch.cells<Column::edges_count>()[batch.rows() - 1], 6U);
    if (!wanted) continue;
    EXPECT_EQ(batch.cells<Column::edges_flags>()[0], 0U);
    EXPECT_EQ(batch.cells<Column::edges_count>()[0], 6U);
    EXPECT_EQ(batch.cells<Column::edges_kind>()[0], static_cast<std::uint8_t>(kKind));
    EXPECT_TRUE(combine_edges(batch));
    EXPECT_EQ(batch.rows(), 2U);
  }
}

TEST(EdgePhases, BlocksAreSelectedWhereTheyOverlap) {
  const std::vector<flow::BlockInsn> insns(3);
  flow::Block block;
  block.ip = 0x1000;
  block.insns = insns;
  block.size = 8;
  block.mode = code::insn::ExecMode::BITS32;
  for (const std::uint64_t at : {0xfffu, 0x1000u, 0x1007u, 0x1008u}) {
    SCOPED_TRACE(at);
    Request request = edges_of({});
    request.selection.ips = {{at, at}};
    EdgePhases edges(request);
    edges.add(block, 0, 0);
    const std::vector<flow::EdgeCount> counts{
        {0x1000, flow::BlockSize{8, 3}.to_ip(), 4, flow::counted_block(block.mode)}};
    edges.add(counts, 0, 0);
    Batch batch(TableId::edges, kAllColumns);
    ASSERT_TRUE(edges.move_to(batch));
    if (at < block.ip || at >= block.ip + block.size) {
      EXPECT_EQ(batch.rows(), 0U);
      continue;
    }
    ASSERT_EQ(batch.rows(), 1U);
    EXPECT_EQ(batch.counts<Column::edges_count>()[0], 5U);
    const auto kind = static_cast<flow::BranchKind>(batch.cells<Column::edges_kind>()[0]);
    EXPECT_TRUE(flow::is_counted_block(kind));
    EXPECT_EQ(flow::mode_of(kind), block.mode);
  }
}

TEST(EdgePhases, AddsThoseOfAnother) {
  const Request request = edges_of({0, 10, 20});
  EdgePhases edges(request);
  EdgePhases others(request);
  edges.add(branch(1, 2), 0, 5);
  others.add(branch(1, 2), 0, 5);
  others.add(branch(7, 8), 0, 15);
  edges.add_all(others);
  EXPECT_EQ(rows_of(edges), (std::vector<Row>{{1, 2, 0}, {7, 1, 1}}));
}

}  // namespace
}  // namespace ptkit::tables::columns
