#include <gtest/gtest.h>

#include <vector>

#include "tables/columns/batch.h"
#include "tables/columns/cell_runs.h"

namespace ptkit::tables::columns {
namespace {

constexpr std::uint64_t kGuard = 0x1122334455667788;

std::vector<std::uint64_t> cells_of(const CellRuns& runs, std::size_t first, std::size_t count) {
  std::vector<std::uint64_t> cells(count + 1, kGuard);
  runs.write(first, count, cells.data());
  EXPECT_EQ(cells.back(), kGuard);  // nothing is written after the rows
  cells.pop_back();
  return cells;
}

std::vector<std::uint64_t> all_of(const CellRuns& runs) { return cells_of(runs, 0, runs.rows()); }

// Run `i` has the value 100 + i and 1 + i % 11 rows.
struct Filled {
  CellRuns runs;
  std::vector<std::uint64_t> cells;
};
Filled filled(std::size_t count) {
  Filled made;
  for (std::size_t i = 0; i < count; ++i) {
    made.cells.insert(made.cells.end(), 1 + i % 11, 100 + i);
    EXPECT_TRUE(made.runs.add(100 + i, made.cells.size()));
  }
  return made;
}

TEST(CellRuns, WritesTheCellsOfAnyRows) {
  const Filled made = filled(40);
  EXPECT_EQ(made.runs.rows(), made.cells.size());
  for (std::size_t first = 0; first < made.cells.size(); first += 3) {
    for (const std::size_t count : {0U, 1U, 7U, 8U, 9U, 30U}) {
      if (first + count > made.cells.size()) continue;
      const auto begin = made.cells.begin() + static_cast<std::ptrdiff_t>(first);
      EXPECT_EQ(cells_of(made.runs, first, count),
                std::vector(begin, begin + static_cast<std::ptrdiff_t>(count)));
    }
  }
}

TEST(CellRuns, JoinsEqualNeighbours) {
  CellRuns runs;
  ASSERT_TRUE(runs.add(5, 1));
  ASSERT_TRUE(runs.add(5, 4));
  EXPECT_EQ(runs.bytes(), sizeof(CellRun));
  ASSERT_TRUE(runs.add(6, 5));
  EXPECT_EQ(all_of(runs), (std::vector<std::uint64_t>{5, 5, 5, 5, 6}));
}

TEST(CellRuns, TakesSpansWithoutThoseThatHaveNoRows) {
  constexpr std::uint64_t kFlag = time::TimeQuery::kBeforeFirstBit;
  const std::vector<flow::SpanRun> spans{{1, 10, 0}, {1, 11 | kFlag, 2}, {2, 11, 2}, {3, 12, 5}};
  CellRuns runs;
  ASSERT_TRUE(runs.add(spans));
  EXPECT_EQ(runs.bytes(), 2 * sizeof(CellRun));
  EXPECT_EQ(all_of(runs), (std::vector<std::uint64_t>{11, 11, 12, 12, 12}));
}

TEST(CellRuns, AppendsRowsOfOthersAfterSomeWereDropped) {
  Filled from = filled(30);
  from.runs.drop_front(8);
  from.cells.erase(from.cells.begin(), from.cells.begin() + 8);
  ASSERT_EQ(all_of(from.runs), from.cells);
  Filled to = filled(5);
  to.runs.drop_front(3);
  to.cells.erase(to.cells.begin(), to.cells.begin() + 3);
  ASSERT_TRUE(to.runs.append(from.runs, 4, 50));
  to.cells.insert(to.cells.end(), from.cells.begin() + 4, from.cells.begin() + 54);
  EXPECT_EQ(all_of(to.runs), to.cells);
  to.runs.shrink();
  EXPECT_EQ(all_of(to.runs), to.cells);
  from.runs.drop_front(from.cells.size());
  EXPECT_EQ(from.runs.rows(), 0u);
}

// A batch of which row `i` has the offset 7 * (i / 4).
Batch batch_of(std::size_t rows, bool with_runs) {
  Batch batch(TableId::blocks, (ColumnMask{1} << index_of(Column::blocks_offset)) |
                                   (ColumnMask{1} << index_of(Column::blocks_ip)));
  if (with_runs) batch.keep_runs(Column::blocks_offset);
  for (std::size_t row = 0; row < rows; ++row) {
    EXPECT_TRUE(batch.reserve(1));
    batch.put<Column::blocks_ip>(row, row);
    batch.put<Column::blocks_offset>(row, 7 * (row / 4));
    batch.add_rows(1);
  }
  return batch;
}

std::vector<std::uint64_t> offsets_of(Batch& batch) {
  if (batch.keeps_runs()) return cells_of(batch.cell_runs(), 0, batch.rows());
  const auto* const cells = batch.cells<Column::blocks_offset>();
  return {cells, cells + batch.rows()};
}

TEST(BatchRuns, HaveNoCells) {
  Batch batch = batch_of(100, true);
  Batch cells = batch_of(100, false);
  EXPECT_TRUE(batch.has_runs(index_of(Column::blocks_offset)));
  EXPECT_EQ(batch.cells<Column::blocks_offset>(), nullptr);
  EXPECT_NE(batch.cells<Column::blocks_ip>(), nullptr);
  EXPECT_LT(batch.bytes(), cells.bytes());
  EXPECT_EQ(offsets_of(batch), offsets_of(cells));
}

TEST(BatchRuns, StayRunsWhereRowsAreAppended) {
  Batch runs = batch_of(50, true);
  Batch cells = batch_of(50, false);
  for (const std::size_t dropped : {0U, 5U, 6U}) {
    Batch more = batch_of(90, true);
    Batch more_cells = batch_of(90, false);
    more.drop_front(dropped);
    more_cells.drop_front(dropped);
    ASSERT_TRUE(runs.append_rows(more, 3, 40));
    ASSERT_TRUE(cells.append_rows(more_cells, 3, 40));
    ASSERT_TRUE(runs.append(std::move(more)));
    ASSERT_TRUE(cells.append(std::move(more_cells)));
  }
  EXPECT_TRUE(runs.keeps_runs());
  EXPECT_EQ(offsets_of(runs), offsets_of(cells));
  runs.clear();
  EXPECT_EQ(runs.cell_runs().rows(), 0u);
}

TEST(BatchRuns, BecomeCellsWhereTheyHaveTo) {
  Batch runs = batch_of(50, true);
  Batch cells = batch_of(50, false);
  ASSERT_TRUE(runs.append_rows(cells, 10, 20));  // rows of cells
  Batch wanted = batch_of(50, false);
  ASSERT_TRUE(wanted.append_rows(cells, 10, 20));
  EXPECT_FALSE(runs.keeps_runs());
  EXPECT_EQ(offsets_of(runs), offsets_of(wanted));
  ASSERT_TRUE(cells.append_rows(batch_of(30, true), 7, 11));  // rows of runs
  Batch all = batch_of(50, false);
  ASSERT_TRUE(all.append_rows(batch_of(30, false), 7, 11));
  EXPECT_EQ(offsets_of(cells), offsets_of(all));
  Batch long_one = batch_of(1000, true);
  const auto tail = long_one.split(333);
  ASSERT_NE(tail, nullptr);
  Batch whole = batch_of(1000, false);
  auto found = offsets_of(long_one);
  const auto rest = offsets_of(*tail);
  found.insert(found.end(), rest.begin(), rest.end());
  EXPECT_EQ(found, offsets_of(whole));
}

}  // namespace
}  // namespace ptkit::tables::columns
