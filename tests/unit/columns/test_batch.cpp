#include <gtest/gtest.h>

#include "columns/batch.h"
#include "columns/edges.h"

namespace ptkit::columns {
namespace {

constexpr ColumnMask bit(Column column) { return ColumnMask{1} << index_of(column); }

Run run_of(std::uint32_t stream) {
  Run run;
  run.stream = stream;
  return run;
}

void add_row(Batch& batch, std::uint64_t from, std::uint8_t kind) {
  ASSERT_TRUE(batch.reserve(1));
  batch.put<Column::branches_from_ip>(batch.rows(), from);
  batch.put<Column::branches_kind>(batch.rows(), kind);
  batch.add_rows(1);
}

Batch filled(std::size_t rows) {
  Batch batch(TableId::branches, bit(Column::branches_from_ip) | bit(Column::branches_kind));
  for (std::size_t row = 0; row < rows; ++row) {
    if (row % 3 == 0) batch.begin_run(run_of(static_cast<std::uint32_t>(row / 3)));
    add_row(batch, 1000 + row, static_cast<std::uint8_t>(row));
  }
  return batch;
}

// The stream of every row, from the runs.
std::vector<std::uint32_t> spread(const Batch& batch) {
  std::vector<std::uint32_t> streams(batch.rows());
  for (const Run& run : batch.runs()) {
    for (std::size_t row = run.row; row < batch.rows(); ++row) streams[row] = run.stream;
  }
  return streams;
}

TEST(Schema, EveryTableHasColumns) {
  for (std::size_t table = 0; table < kTableCount; ++table) {
    EXPECT_FALSE(columns_of(static_cast<TableId>(table)).empty());
  }
  EXPECT_EQ(table_of(Column::edges_space), TableId::edges);
  EXPECT_EQ(columns_of(TableId::branches)[index_of(Column::branches_to_ip)].name, "to_ip");
}

TEST(Schema, ValidityNamesColumnsThatExist) {
  for (std::size_t table = 0; table < kTableCount; ++table) {
    const auto id = static_cast<TableId>(table);
    for (const auto& row : validity_of(id)) {
      bool column = false;
      for (const auto& info : columns_of(id)) column |= info.name == row.column;
      for (const auto& info : runs_of(id)) column |= info.name == row.column;
      bool derived = false;
      for (const auto& info : derived_of(id)) derived |= info.name == row.derived;
      for (const auto& info : run_derived_of(id)) derived |= info.name == row.derived;
      EXPECT_TRUE(column) << row.column;
      EXPECT_TRUE(derived) << row.derived;
    }
  }
}

TEST(Batch, HasOnlySelectedColumns) {
  Batch batch = filled(5);
  EXPECT_NE(batch.cells<Column::branches_from_ip>(), nullptr);
  EXPECT_EQ(batch.cells<Column::branches_to_ip>(), nullptr);
  batch.put<Column::branches_to_ip>(0, 1);  // no column: nothing happens
  EXPECT_EQ(batch.cells<Column::branches_from_ip>()[4], 1004u);
}

TEST(Batch, SplitAndAppendAreInverse) {
  for (std::size_t at = 0; at <= 20; ++at) {
    Batch batch = filled(20);
    const auto streams = spread(batch);
    auto tail = batch.split(at);
    ASSERT_NE(tail, nullptr);
    EXPECT_EQ(batch.rows(), at);
    EXPECT_EQ(tail->rows(), 20 - at);
    EXPECT_EQ(spread(*tail),
              std::vector<std::uint32_t>(streams.begin() + static_cast<long>(at), streams.end()));
    ASSERT_TRUE(batch.append(std::move(*tail)));
    EXPECT_EQ(batch.rows(), 20u);
    EXPECT_EQ(spread(batch), streams);
    EXPECT_EQ(batch.runs().size(), 7u) << "runs that were cut are whole again";
    for (std::size_t row = 0; row < 20; ++row) {
      EXPECT_EQ(batch.cells<Column::branches_from_ip>()[row], 1000 + row);
    }
  }
}

TEST(Batch, DropFrontKeepsRuns) {
  for (std::size_t count = 0; count <= 20; ++count) {
    Batch batch = filled(20);
    const auto streams = spread(batch);
    batch.drop_front(count);
    EXPECT_EQ(spread(batch),
              std::vector<std::uint32_t>(streams.begin() + static_cast<long>(count), streams.end()));
    if (count < 20) {
      EXPECT_EQ(batch.cells<Column::branches_from_ip>()[0], 1000 + count);
      EXPECT_EQ(batch.runs().front().row, 0u);
    }
  }
}

TEST(Batch, RunsWithoutRowsVanish) {
  Batch batch(TableId::branches, kAllColumns);
  batch.begin_run(run_of(1));
  batch.begin_run(run_of(2));
  add_row(batch, 1, 0);
  batch.begin_run(run_of(3));
  batch.begin_run(run_of(2));
  add_row(batch, 2, 0);
  ASSERT_EQ(batch.runs().size(), 1u);
  EXPECT_EQ(batch.runs()[0].stream, 2u);
}

struct AttachedMemory {
  explicit AttachedMemory(std::size_t rows)
      : from(rows), kind(rows), columns(columns_of(TableId::branches).size()) {
    columns[index_of(Column::branches_from_ip)] = from.data();
    columns[index_of(Column::branches_kind)] = kind.data();
  }
  std::vector<std::uint64_t> from;
  std::vector<std::uint8_t> kind;
  std::vector<void*> columns;
};

TEST(Batch, UsesAttachedMemory) {
  AttachedMemory attached(30);
  Batch batch = filled(7);
  batch.drop_front(2);
  ASSERT_TRUE(batch.attach(attached.columns, 30));
  EXPECT_TRUE(batch.is_attached());
  add_row(batch, 2000, 9);
  EXPECT_EQ(attached.from[0], 1002u) << "rows that were there came along";
  EXPECT_EQ(attached.from[5], 2000u);
  EXPECT_EQ(attached.kind[5], 9);
  batch.drop_front(4);
  ASSERT_TRUE(batch.attach(attached.columns, 30));  // the same memory again: rows move to its beginning
  EXPECT_EQ(batch.rows(), 2u);
  EXPECT_EQ(attached.from[0], 1006u);
  EXPECT_EQ(attached.from[1], 2000u);
}

TEST(Batch, PrependsEarlierRows) {
  for (std::size_t count = 0; count <= 12; ++count) {
    SCOPED_TRACE(count);
    AttachedMemory attached(40);
    Batch whole = filled(20);
    const auto streams = spread(whole);
    Batch batch(TableId::branches, whole.mask());
    ASSERT_TRUE(batch.attach(attached.columns, 40, nullptr, 10));
    ASSERT_TRUE(batch.append_rows(whole, count, 20 - count));
    Batch before(TableId::branches, whole.mask());
    ASSERT_TRUE(before.append_rows(whole, 0, count));
    ASSERT_EQ(batch.prepend(before), count <= 10) << "as many as there is room for";
    if (count > 10) continue;
    EXPECT_EQ(spread(batch), streams);
    EXPECT_EQ(batch.runs().size(), 7U);
    for (std::size_t row = 0; row < 20; ++row) {
      EXPECT_EQ(attached.from[10 - count + row], 1000 + row);
      EXPECT_EQ(attached.kind[10 - count + row], row);
    }
  }
}

TEST(Batch, LeavesAttachedMemoryThatIsTooSmall) {
  AttachedMemory attached(8);
  Batch batch(TableId::branches, bit(Column::branches_from_ip) | bit(Column::branches_kind));
  ASSERT_TRUE(batch.attach(attached.columns, 8));
  for (std::uint64_t row = 0; row < 100; ++row) add_row(batch, row, 1);
  EXPECT_FALSE(batch.is_attached());
  for (std::uint64_t row = 0; row < 100; ++row) EXPECT_EQ(batch.cells<Column::branches_from_ip>()[row], row);
  EXPECT_EQ(attached.from[7], 7u);
  EXPECT_FALSE(batch.attach(attached.columns, 8)) << "too many rows";
  EXPECT_EQ(batch.rows(), 100u);
  batch.drop_front(95);
  ASSERT_TRUE(batch.attach(attached.columns, 8));
  EXPECT_EQ(attached.from[4], 99u);
}

TEST(ColumnBuffer, ReportsOutOfMemory) {
  ColumnBuffer buffer;
  ASSERT_TRUE(buffer.reserve(100));
  buffer.data()[99] = 7;
  EXPECT_FALSE(buffer.reserve(SIZE_MAX / 2));
  EXPECT_EQ(buffer.data()[99], 7);
  EXPECT_GE(buffer.capacity(), 100u);
}

TEST(ColumnBuffer, GrowsInStepsNotByDoubling) {
  ColumnBuffer buffer;
  const std::size_t gigabyte = std::size_t{1} << 30;
  ASSERT_TRUE(buffer.reserve(gigabyte));  // never touched, so never backed
  ASSERT_TRUE(buffer.reserve(gigabyte + 1));
  EXPECT_LE(buffer.capacity(), gigabyte + ColumnBuffer::kLargestStep);
}

TEST(Edges, AreCountedBySpaceAndSorted) {
  EdgeCounter counter;
  for (int i = 0; i < 3; ++i) counter.add({10, 20, 1, 0});
  counter.add({10, 20, 0, 0});
  counter.add({5, 20, 1, 0});
  Batch edges(TableId::edges, kAllColumns);
  ASSERT_TRUE(counter.move_to(edges));
  ASSERT_EQ(edges.rows(), 3u);
  EXPECT_EQ(edges.cells<Column::edges_space>()[0], 0u);
  EXPECT_EQ(edges.cells<Column::edges_from_ip>()[1], 5u);
  EXPECT_EQ(edges.cells<Column::edges_count>()[2], 3u);
  Batch more(TableId::edges, kAllColumns);
  counter.add({10, 20, 1, 0}, 4);
  ASSERT_TRUE(counter.move_to(more));
  ASSERT_TRUE(edges.append(std::move(more)));
  ASSERT_TRUE(combine_edges(edges));
  ASSERT_EQ(edges.rows(), 3u);
  EXPECT_EQ(edges.cells<Column::edges_count>()[2], 7u);
}

}  // namespace
}  // namespace ptkit::columns
