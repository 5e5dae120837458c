// Times of rows in bulk equal times that are queried row by row.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tables/columns/span_times.h"

namespace ptkit::tables::columns {
namespace {

void put(std::vector<std::uint8_t>& bytes, std::initializer_list<unsigned> more) {
  for (const unsigned byte : more) bytes.push_back(static_cast<std::uint8_t>(byte));
}

void put_word(std::vector<std::uint8_t>& bytes, std::uint64_t word, unsigned count) {
  for (unsigned i = 0; i < count; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
}

void put_psb(std::vector<std::uint8_t>& bytes) {
  for (int i = 0; i < 8; ++i) put(bytes, {0x02, 0x82});
  put(bytes, {0x02, 0x23});
}

// PSBs with TNT between them; from the second on with TSCs and CYCs.
std::vector<std::uint8_t> stream_of(unsigned intervals) {
  std::vector<std::uint8_t> bytes;
  for (unsigned i = 0; i < intervals; ++i) {
    put_psb(bytes);
    if (i > 0) {
      put(bytes, {0x19});
      put_word(bytes, 1'000'000 + i * 5000, 7);
    }
    for (unsigned k = 0; k < 40; ++k) {
      if (i > 0) put(bytes, {(k % 32) << 3 | 3});
      put(bytes, {0x1c});
    }
  }
  return bytes;
}

struct Scene {
  std::vector<std::uint8_t> bytes = stream_of(30);
  std::vector<flow::SpanRun> runs;
  std::size_t first_row = 3;

  explicit Scene(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uint64_t row = first_row;
    std::uint64_t since = 0;
    for (std::uint64_t at = 0; at < bytes.size(); at += 1 + random() % 5) {
      row += random() % 4 == 0 ? random() % 40 : random() % 9;  // some runs have no rows
      runs.push_back({since, at, row});
      if (random() % 3 != 0) since = at;
    }
  }
  [[nodiscard]] std::size_t rows() const { return static_cast<std::size_t>(runs.back().row_end); }
};

constexpr ColumnMask bit(Column column) { return ColumnMask{1} << index_of(column); }

constexpr std::uint64_t kUntouched = 0x5555555555555555;

// A batch with a pattern in every cell.
Batch batch_of(ColumnMask mask, std::size_t rows) {
  Batch batch(TableId::branches, mask);
  EXPECT_TRUE(batch.reserve(rows + kSpanSlack));
  const auto fill = [&](auto* cells) {
    if (cells != nullptr) {
      using T = std::remove_pointer_t<decltype(cells)>;
      std::fill_n(cells, rows + kSpanSlack, static_cast<T>(kUntouched & ~std::uint64_t{flow::TIME_KNOWN}));
    }
  };
  const SpanCells cells = span_cells(batch);
  fill(cells.tsc);
  fill(cells.tsc_error);
  fill(cells.tsc_source);
  fill(cells.flags);
  fill(cells.offset);
  batch.add_rows(rows);
  return batch;
}

void expect_row(const SpanCells& cells, std::size_t row, const time::TimeRange& range, std::uint64_t offset) {
  if (cells.tsc != nullptr) {
    ASSERT_EQ(cells.tsc[row], range.tsc) << row;
  }
  if (cells.tsc_error != nullptr) {
    ASSERT_EQ(cells.tsc_error[row], range.error) << row;
  }
  if (cells.tsc_source != nullptr) {
    ASSERT_EQ(cells.tsc_source[row], static_cast<std::uint8_t>(range.source)) << row;
  }
  if (cells.offset != nullptr) {
    ASSERT_EQ(cells.offset[row], offset) << row;
  }
  if (cells.flags != nullptr) {
    constexpr auto kBefore = static_cast<std::uint8_t>(kUntouched & ~std::uint64_t{flow::TIME_KNOWN});
    ASSERT_EQ(cells.flags[row], range.known ? kBefore | flow::TIME_KNOWN : kBefore) << row;
  }
}

void compare(const Scene& scene, ColumnMask mask, std::size_t parts, bool tracked) {
  Batch batch = batch_of(mask, scene.rows());
  const SpanCells cells = span_cells(batch);
  time::TimeTrack bulk(scene.bytes, {}, {});
  std::size_t row = scene.first_row;
  const std::span<const flow::SpanRun> runs = scene.runs;
  const std::size_t step = runs.size() / parts + 1;
  for (std::size_t i = 0; i < runs.size(); i += step) {
    const auto part = runs.subspan(i, std::min(step, runs.size() - i));
    fill_spans(part, row, tracked ? &bulk : nullptr, cells);
    row = static_cast<std::size_t>(part.back().row_end);
  }
  time::TimeTrack track(scene.bytes, {}, {});
  row = 0;
  time::TimeRange range;
  for (; row < scene.first_row; ++row) {
    if (cells.tsc != nullptr) {
      ASSERT_EQ(cells.tsc[row], kUntouched & ~std::uint64_t{flow::TIME_KNOWN});
    }
  }
  std::size_t known = 0;
  for (const flow::SpanRun& run : scene.runs) {
    for (; row < run.row_end; ++row) {
      if (tracked) range = track.at(run.since, run.offset);
      ASSERT_NO_FATAL_FAILURE(expect_row(cells, row, range, run.offset));
    }
    known += range.known;
  }
  EXPECT_EQ(known > 0 && known < scene.runs.size(), tracked);
}

TEST(SpanTimes, EqualTimesOfSingleRows) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) compare(Scene(seed), kAllColumns, 1, true);
}

TEST(SpanTimes, KeepsRowsOfATime) {
  const Scene scene(3);
  Batch batch = batch_of(bit(Column::branches_from_ip), scene.rows());
  time::TimeTrack bulk(scene.bytes, {}, {});
  TimeFilter filter{1'020'000, 1'090'000, {}};
  fill_spans(scene.runs, scene.first_row, &bulk, span_cells(batch), &filter);
  time::TimeTrack track(scene.bytes, {}, {});
  std::vector<bool> expected(scene.rows(), false);
  std::size_t row = scene.first_row;
  for (const flow::SpanRun& run : scene.runs) {
    if (run.row_end <= row) continue;
    const time::TimeRange range = track.at(run.since, run.offset);
    const bool kept = range.known && range.tsc >= filter.begin && range.tsc < filter.end;
    for (; row < run.row_end; ++row) expected[row] = kept;
  }
  std::vector<bool> kept(scene.rows(), false);
  for (const RowRange& range : filter.kept) {
    ASSERT_LT(range.begin, range.end);
    ASSERT_TRUE(range.begin == 0 || !kept[range.begin - 1]);  // ranges that touch are one
    for (std::size_t i = range.begin; i < range.end; ++i) kept[i] = true;
  }
  EXPECT_EQ(kept, expected);
  EXPECT_GT(std::count(kept.begin(), kept.end(), true), 0);
  EXPECT_GT(std::count(kept.begin() + 3, kept.end(), false), 0);
}

TEST(SpanTimes, InParts) {
  for (const std::size_t parts : {2U, 7U, 100U}) compare(Scene(parts), kAllColumns, parts, true);
}

TEST(SpanTimes, OnlySelectedColumns) {
  const Scene scene(3);
  for (const Column column : {Column::branches_tsc, Column::branches_tsc_error, Column::branches_tsc_source,
                              Column::branches_flags, Column::branches_offset}) {
    compare(scene, bit(column), 1, true);
  }
}

TEST(SpanTimes, WithoutTrackTimesAreUnknown) { compare(Scene(5), kAllColumns, 1, false); }

TEST(SpanTimes, NoRunsNoRows) {
  Batch batch = batch_of(kAllColumns, 4);
  const SpanCells cells = span_cells(batch);
  fill_spans({}, 0, nullptr, cells);
  EXPECT_EQ(cells.offset[0], kUntouched & ~std::uint64_t{flow::TIME_KNOWN});
}

TEST(SpanTimes, TablesWithoutSpansHaveNoCells) {
  Batch edges(TableId::edges, kAllColumns);
  ASSERT_TRUE(edges.reserve(1));
  EXPECT_FALSE(span_cells(edges).any_time());
  Batch blocks(TableId::blocks, kAllColumns);
  ASSERT_TRUE(blocks.reserve(1));
  EXPECT_NE(span_cells(blocks).offset, nullptr);
  Batch instructions(TableId::instructions, kAllColumns);
  ASSERT_TRUE(instructions.reserve(1));
  EXPECT_EQ(span_cells(instructions).tsc_error, nullptr) << "uniform so far";
  ASSERT_TRUE(instructions.set_varying(kAllColumns));
  EXPECT_NE(span_cells(instructions).tsc_error, nullptr);
}

}  // namespace
}  // namespace ptkit::tables::columns
