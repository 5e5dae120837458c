#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tables/columns/batch.h"
#include "tables/columns/edges.h"

namespace ptkit::tables::columns {
namespace {

constexpr ColumnMask bit(Column column) { return ColumnMask{1} << index_of(column); }

OwnerRun run_of(std::uint32_t stream) {
  OwnerRun run;
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
  for (const OwnerRun& run : batch.runs()) {
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
    for (const auto& row : rows_of<RowKind::VALID>(id)) {
      bool column = false;
      for (const auto& info : columns_of(id)) column |= info.name == row.name;
      for (const auto& info : rows_of<RowKind::RUN>(id)) column |= info.name == row.name;
      bool derived = false;
      for (const auto& info : rows_of<RowKind::DERIVED>(id)) derived |= info.name == row.derived;
      for (const auto& info : rows_of<RowKind::RUN_DERIVED>(id)) derived |= info.name == row.derived;
      EXPECT_TRUE(column) << row.name;
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

TEST(Batch, AddsSomeOfTheCells) {
  Batch batch = filled(10);
  ASSERT_TRUE(batch.reserve(20));
  for (std::size_t row = 10; row < 30; ++row) batch.cells<Column::branches_from_ip>()[row] = 1000 + row;
  const std::vector<RowRange> kept{{10, 12}, {15, 16}, {20, 28}};
  batch.add_rows_of(kept, 30);
  ASSERT_EQ(batch.rows(), 21u);
  std::vector<std::uint64_t> expected;
  for (std::size_t row = 0; row < 28; ++row) {
    if (row < 12 || row == 15 || row >= 20) expected.push_back(1000 + row);
  }
  const std::uint64_t* cells = batch.cells<Column::branches_from_ip>();
  EXPECT_EQ(std::vector<std::uint64_t>(cells, cells + batch.rows()), expected);
}

// A thread is switched in after the last row: the rows that follow are in the tail.
TEST(Batch, SplitKeepsRunWithoutRows) {
  Batch batch = filled(20);
  batch.begin_run({.stream = 99});
  const auto tail = batch.split(15);
  ASSERT_NE(tail, nullptr);
  ASSERT_EQ(tail->runs().back().stream, 99U);
  EXPECT_EQ(tail->runs().back().row, 5U);
  EXPECT_NE(batch.runs().back().stream, 99U);
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

constexpr ColumnMask kTimed =
    bit(Column::branches_from_ip) | bit(Column::branches_tsc) | bit(Column::branches_tsc_source);

// `rows` rows with this time.
Batch timed(std::size_t rows, std::uint64_t tsc, bool varying = false) {
  Batch batch(TableId::branches, kTimed);
  EXPECT_TRUE(batch.set_varying(varying ? kTimed : 0));
  for (std::size_t row = 0; row < rows; ++row) {
    EXPECT_TRUE(batch.reserve(1));
    batch.put<Column::branches_from_ip>(row, row);
    batch.put<Column::branches_tsc>(row, tsc);
    batch.add_rows(1);
  }
  return batch;
}

std::vector<std::uint64_t> tscs(const Batch& batch) {
  constexpr std::size_t kTsc = index_of(Column::branches_tsc);
  if (batch.is_uniform(kTsc)) return std::vector<std::uint64_t>(batch.rows(), batch.uniform_value(kTsc));
  const auto* const cells = reinterpret_cast<const std::uint64_t*>(batch.data(kTsc));
  return {cells, cells + batch.rows()};
}

TEST(UniformColumns, HaveNoCells) {
  Batch batch = timed(100, 7);
  EXPECT_EQ(batch.uniform(), bit(Column::branches_tsc) | bit(Column::branches_tsc_source));
  EXPECT_EQ(batch.cells<Column::branches_tsc>(), nullptr);
  EXPECT_NE(batch.cells<Column::branches_from_ip>(), nullptr);
  EXPECT_EQ(batch.bytes(), 800u);
  EXPECT_EQ(tscs(batch), std::vector<std::uint64_t>(100, 7));
}

TEST(UniformColumns, AreStoredFromTheFirstOtherValueOn) {
  for (const std::size_t rows : {1U, 3U, 5000U}) {
    Batch batch = timed(rows, 7);
    ASSERT_TRUE(batch.reserve(3));
    batch.put<Column::branches_tsc>(rows, 8);
    batch.add_rows(1);
    batch.fill<Column::branches_tsc>(rows + 1, rows + 3, 9);
    batch.add_rows(2);
    std::vector<std::uint64_t> wanted(rows, 7);
    wanted.insert(wanted.end(), {8, 9, 9});
    EXPECT_EQ(tscs(batch), wanted);
    EXPECT_FALSE(batch.out_of_memory());
  }
}

TEST(UniformColumns, JoinWithAnyOther) {
  for (const std::uint64_t first : {0U, 7U}) {
    for (const std::uint64_t second : {0U, 7U}) {
      for (const unsigned varying : {0U, 1U, 2U, 3U}) {
        for (const std::size_t rows : {0U, 4U, 9000U}) {
          SCOPED_TRACE(testing::Message() << first << ' ' << second << ' ' << varying << ' ' << rows);
          Batch one = timed(rows, first, (varying & 1) != 0);
          Batch other = timed(30, second, (varying & 2) != 0);
          std::vector<std::uint64_t> wanted(rows, first);
          wanted.insert(wanted.end(), 20, second);
          ASSERT_TRUE(one.append_rows(other, 10, 20));
          EXPECT_EQ(tscs(one), wanted);
          EXPECT_EQ(one.is_uniform(index_of(Column::branches_tsc)),
                    varying == 0 && (rows == 0 || first == second));
          const auto tail = one.split(rows / 2);
          ASSERT_NE(tail, nullptr);
          EXPECT_EQ(tscs(*tail),
                    std::vector<std::uint64_t>(wanted.begin() + static_cast<long>(rows / 2), wanted.end()));
          wanted.resize(rows / 2);
          wanted.insert(wanted.end(), 30, second);
          ASSERT_TRUE(one.append(std::move(other)));
          EXPECT_EQ(tscs(one), wanted);
        }
      }
    }
  }
}

TEST(UniformColumns, UseAttachedMemoryOnceStored) {
  for (const bool before_is_stored : {false, true}) {
    for (const std::uint64_t value : {7U, 8U}) {
      std::vector<std::uint64_t> from(40), tsc(40);
      std::vector<std::uint8_t> source(40);
      std::vector<void*> columns(columns_of(TableId::branches).size());
      columns[index_of(Column::branches_from_ip)] = from.data();
      columns[index_of(Column::branches_tsc)] = tsc.data();
      columns[index_of(Column::branches_tsc_source)] = source.data();
      Batch batch(TableId::branches, kTimed);
      ASSERT_TRUE(batch.attach(columns, 40, nullptr, 10));
      Batch rows = timed(20, 7);
      ASSERT_TRUE(batch.append_rows(rows, 0, 20));
      EXPECT_EQ(from[29], 19u);
      EXPECT_EQ(tsc[10], 0u) << "not written";
      Batch before = timed(5, value, before_is_stored);
      ASSERT_TRUE(batch.prepend(before));
      std::vector<std::uint64_t> wanted(5, value);
      wanted.insert(wanted.end(), 20, 7);
      EXPECT_EQ(tscs(batch), wanted);
      EXPECT_EQ(batch.is_uniform(index_of(Column::branches_tsc)), value == 7 && !before_is_stored);
      // Rows that do not fit leave the memory, of which the batch keeps nothing.
      ASSERT_TRUE(batch.reserve(100));
      tsc.assign(40, 99);
      batch.fill<Column::branches_tsc>(25, 125, 3);
      batch.add_rows(100);
      wanted.insert(wanted.end(), 100, 3);
      EXPECT_EQ(tscs(batch), wanted);
    }
  }
}

TEST(UniformColumns, SuccessorKeepsWhatVaries) {
  const Batch batch = timed(3, 7, true);
  const auto next = batch.successor();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(next->uniform(), 0u);
  EXPECT_EQ(timed(3, 7).successor()->uniform(), bit(Column::branches_tsc) | bit(Column::branches_tsc_source));
}

// Pages that were written are worth keeping, also when the rows are gone.
// A column of equal values in some windows, and of others elsewhere.
TEST(BatchWindows, RowsAreThoseOfAppendedBatches) {
  constexpr std::size_t kRows = 100;
  constexpr auto kFrom = Column::branches_from_ip;
  constexpr auto kTsc = Column::branches_tsc;
  const auto write = [](Batch& batch, std::size_t rows, std::uint64_t first, std::uint64_t step) {
    batch.begin_run(run_of(static_cast<std::uint32_t>(first)));
    for (std::size_t row = 0; row < rows; ++row) {
      ASSERT_TRUE(batch.reserve(1));
      batch.put<kFrom>(row, first + row);
      batch.put<kTsc>(row, first + row * step);
      batch.add_rows(1);
    }
  };
  struct Part {
    std::size_t rows;
    std::uint64_t first;
    std::uint64_t step;
  };
  const std::vector<std::vector<Part>> cases = {
      {{kRows, 5, 0}, {kRows, 5, 0}},                 // uniform
      {{kRows, 5, 0}, {kRows, 6, 0}, {10, 6, 0}},     // uniform in each
      {{kRows, 5, 0}, {0, 0, 0}, {kRows, 7, 1}},      // later stored
      {{kRows, 5, 1}, {kRows, 7, 0}, {kRows, 7, 0}},  // stored from the start
  };
  for (const std::vector<Part>& parts : cases) {
    SCOPED_TRACE(&parts - cases.data());
    Batch plain(TableId::branches, bit(kFrom) | bit(kTsc));
    Batch all(TableId::branches, bit(kFrom) | bit(kTsc));
    ASSERT_TRUE(all.reserve_windows(parts.size() * kRows));
    const std::uint8_t* const memory = all.data(index_of(kFrom));
    for (const Part& part : parts) {
      Batch appended(TableId::branches, bit(kFrom) | bit(kTsc));
      write(appended, part.rows, part.first, part.step);
      ASSERT_TRUE(plain.append_rows(appended, 0, part.rows));
      const auto window = all.window(all.rows(), part.rows);
      write(*window, part.rows, part.first, part.step);
      ASSERT_TRUE(window->is_attached());
      ASSERT_TRUE(all.add_window(*window));
    }
    EXPECT_EQ(all.data(index_of(kFrom)), memory);
    EXPECT_EQ(all.uniform(), plain.uniform());
    EXPECT_EQ(spread(all), spread(plain));
    all.shrink();
    ASSERT_TRUE(all.set_varying(bit(kTsc)) && plain.set_varying(bit(kTsc)));
    ASSERT_EQ(all.rows(), plain.rows());
    for (const Column column : {kFrom, kTsc})
      EXPECT_EQ(std::memcmp(all.data(index_of(column)), plain.data(index_of(column)), all.rows() * 8), 0);
  }
}

TEST(BatchMemory, PagesOfDroppedRowsGoBackToThePool) {
  constexpr std::size_t kRows = std::size_t{1} << 20U;
  using Drop = void (*)(Batch&);
  const std::array<Drop, 3> drops{[](Batch& batch) { batch.clear(); },
                                  [](Batch& batch) { batch.drop_front(batch.rows()); },
                                  [](Batch& batch) { ASSERT_NE(batch.split(0), nullptr); }};
  const auto& pool = MemoryPool::of_process();
  for (const Drop drop : drops) {
    static_cast<void>(pool->trim(0));
    {
      Batch batch(TableId::branches, bit(Column::branches_from_ip));
      ASSERT_TRUE(batch.reserve(kRows));
      batch.fill<Column::branches_from_ip>(0, kRows, 1);
      batch.add_rows(kRows);
      drop(batch);
    }
    EXPECT_GE(pool->idle_bytes(), kRows * sizeof(std::uint64_t));
  }
}

TEST(Edges, AreCountedBySpaceAndSorted) {
  EdgeCounter counter;
  for (int i = 0; i < 3; ++i) counter.add({10, 20, 1, 1});
  counter.add({10, 20, 1, 0});
  counter.add({5, 20, 1, 1});
  Batch edges(TableId::edges, kAllColumns);
  ASSERT_TRUE(counter.move_to(edges));
  ASSERT_EQ(edges.rows(), 3u);
  EXPECT_EQ(edges.cells<Column::edges_space>()[0], 0u);
  EXPECT_EQ(edges.cells<Column::edges_from_ip>()[1], 5u);
  EXPECT_EQ(edges.cells<Column::edges_count>()[2], 3u);
  Batch more(TableId::edges, kAllColumns);
  counter.add({10, 20, 4, 1});
  ASSERT_TRUE(counter.move_to(more));
  ASSERT_TRUE(edges.append(std::move(more)));
  ASSERT_TRUE(combine_edges(edges));
  ASSERT_EQ(edges.rows(), 3u);
  EXPECT_EQ(edges.cells<Column::edges_count>()[2], 7u);
}

}  // namespace
}  // namespace ptkit::tables::columns
