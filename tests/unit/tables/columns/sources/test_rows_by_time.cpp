// Rows that are selected by time. All rows of the simple decoder, of which those of other times are left out,
// are the rows that have to be found.
#include "unit/tables/columns/recordings.h"

namespace ptkit::tables::columns {
namespace {

using Bundle = std::shared_ptr<trace::TraceBundle>;

constexpr TableId kTimedTables[] = {TableId::branches, TableId::blocks, TableId::instructions,
                                    TableId::events};

struct Window {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct TimeCells {
  const std::uint64_t* tsc = nullptr;
  std::vector<bool> known;
};

template <Column TSC, Column FLAGS>
TimeCells times_of(Batch& batch, unsigned known_flag) {
  TimeCells times{batch.cells<TSC>(), {}};
  for (std::size_t i = 0; i < batch.rows(); ++i)
    times.known.push_back((batch.cells<FLAGS>()[i] & known_flag) != 0);
  return times;
}

TimeCells times_of(Batch& batch) {
  using enum Column;
  switch (batch.table()) {
    case TableId::branches:
      return times_of<branches_tsc, branches_flags>(batch, flow::TIME_KNOWN);
    case TableId::blocks:
      return times_of<blocks_tsc, blocks_flags>(batch, flow::TIME_KNOWN);
    case TableId::instructions:
      return times_of<instructions_tsc, instructions_flags>(batch, flow::TIME_KNOWN);
    default:
      return times_of<events_tsc, events_flags>(batch, flow::EV_TIME_KNOWN);
  }
}

std::unique_ptr<Batch> rows_in(Batch& all, const TimeCells& times, const Window& window) {
  auto some = std::make_unique<Batch>(all.table(), all.mask());
  for (std::size_t i = 0; i < all.rows(); ++i) {
    if (!times.known[i] || times.tsc[i] < window.begin || times.tsc[i] >= window.end) continue;
    EXPECT_TRUE(some->append_rows(all, i, 1));
  }
  return some;
}

// From nothing to everything, with limits at times of rows and beside them.
Window choose(const Batch& all, const TimeCells& times, std::mt19937_64& random) {
  const auto limit = [&] { return times.tsc[random() % all.rows()] + random() % 2; };
  const std::uint64_t begin = random() % 6 == 0 ? 0 : limit();
  const std::uint64_t width = random() % 3 == 0 ? 1 + random() % 500 : 1 + random() % 50000;
  if (random() % 6 == 0) return {begin, UINT64_MAX};
  return {begin, begin + width};
}

void expect_rows_of_times(const Bundle& bundle, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (const TableId table : kTimedTables) {
    const Table all = read(bundle, request_of(table, true), {.fast = false});
    ASSERT_GT(all.rows->rows(), 50U);
    ASSERT_TRUE(all.rows->set_varying(kAllColumns));
    const TimeCells times = times_of(*all.rows);
    for (unsigned i = 0; i < 8; ++i) {
      SCOPED_TRACE(testing::Message() << table_name(table) << ' ' << i);
      const Window window = choose(*all.rows, times, random);
      const auto expected = rows_in(*all.rows, times, window);
      Request request = request_of(table, true);
      request.selection.by_time = true;
      request.selection.tsc_begin = window.begin;
      request.selection.tsc_end = window.end;
      const Table selected = read(bundle, request, {.rows = i % 3 == 0 ? 70 : SIZE_MAX});
      expect_equal(selected.rows.get(), expected.get());
      expect_equal(selected.errors.get(), all.errors.get());  // sides are not selected
      expect_equal(selected.gaps.get(), all.gaps.get());
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(RowsByTime, AreThoseOfTheirTimes) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    expect_rows_of_times(recording(seed, 0, seed % 2 == 0, seed > 2), seed);
  }
}

TEST(RowsByTime, AreFoundWhereTraceIsLost) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const auto bundle = recording(seed, 5, seed % 2 == 0, true);
    if (seed > 2) repeat(*bundle, 2);  // time goes back
    damage(*bundle, static_cast<unsigned>(seed * 4), seed);
    expect_rows_of_times(bundle, seed);
  }
}

TEST(RowsByTime, AreFoundWhereCodeAndThreadsChange) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    expect_rows_of_times(changing_recording(seed), seed);
  }
}

// Limits of times are read for some bytes after a PSB, here for those of the next PSBs, too.
TEST(RowsByTime, AreFoundWherePsbsAreClose) {
  trace_unit::generator::GeneratorConfig config;
  config.psb_bytes = 24;
  walk::WalkOptions options;
  options.steps = 4000;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SCOPED_TRACE(seed);
    options.seed = seed;
    const auto bundle = flow::roundtrip::bundle_of(walk::random_walk(options), config);
    expect_rows_of_times(bundle, seed);
    const Table all = read(bundle, request_of(TableId::branches, true), {.fast = false});
    std::mt19937_64 random(seed);
    for (unsigned i = 0; i < 12; ++i) {
      const Window window = choose(*all.rows, times_of(*all.rows), random);
      Request request = request_of(TableId::edges, true);
      request.selection.by_time = true;
      request.selection.tsc_begin = window.begin;
      request.selection.tsc_end = window.end;
      expect_equal(read(bundle, request, {}).rows.get(), read(bundle, request, {.fast = false}).rows.get());
    }
  }
}

// The phases of a stream say nothing of the next one.
TEST(RowsByTime, AreNotOfAStreamWithoutTimes) {
  const auto bundle = recording(1, 0, true, true);
  trace_unit::generator::GeneratorConfig config;
  config.tsc = false;
  walk::WalkOptions options;
  options.seed = 1;
  options.steps = 40000;
  const auto timeless = flow::roundtrip::bundle_of(walk::random_walk(options), config);
  const Table rows = read(bundle, request_of(TableId::branches, true), {});
  const std::uint64_t* tsc = rows.rows->cells<Column::branches_tsc>();
  bundle->streams.push_back(timeless->streams[0]);
  for (const TableId table : {TableId::branches, TableId::instructions, TableId::edges}) {
    Request request = request_of(table, true);
    request.selection.by_time = true;
    request.selection.tsc_begin = tsc[rows.rows->rows() / 2];
    request.selection.tsc_end = UINT64_MAX;
    const Table both = read(bundle, request, {});
    trace::TraceBundle first = *bundle;
    first.streams.pop_back();
    const Table alone = read(std::make_shared<trace::TraceBundle>(first), request, {});
    ASSERT_GT(alone.rows->rows(), 0U);
    EXPECT_EQ(both.rows->rows(), alone.rows->rows()) << table_name(table);
    if (table != TableId::edges) continue;
    for (std::size_t i = 0; i < alone.rows->rows(); ++i)
      ASSERT_EQ(both.rows->cells<Column::edges_count>()[i], alone.rows->cells<Column::edges_count>()[i]);
  }
}

}  // namespace
}  // namespace ptkit::tables::columns
