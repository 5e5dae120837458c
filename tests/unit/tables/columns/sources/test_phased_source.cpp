// Edges by phases of time and of instructions. The rows of the simple decoder, put into phases one by one,
// are the counts that have to be found.
#include <map>
#include <tuple>

#include "tables/columns/sources/phased_source.h"
#include "unit/tables/columns/indexes.h"

namespace ptkit::tables::columns {
namespace {

using Bundle = std::shared_ptr<trace::TraceBundle>;
using Counts = std::map<std::tuple<std::uint32_t, trace::SpaceId, std::uint64_t, std::uint64_t, std::uint8_t>,
                        std::uint64_t>;

// Branches of the simple decoder with both ends, and where they are.
struct Branches {
  struct Row {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    trace::SpaceId space = 0;
    std::uint8_t kind = 0;
    bool timed = false;
    std::uint64_t tsc = 0;
    std::uint64_t instruction = 0;
  };
  std::vector<Row> rows;

  explicit Branches(const Bundle& bundle) {
    const Table table = read(bundle, request_of(TableId::branches, true), {.fast = false});
    Batch& batch = *table.rows;
    EXPECT_TRUE(batch.set_varying(kAllColumns));
    std::size_t run = 0;
    for (std::size_t i = 0; i < batch.rows(); ++i) {
      while (run + 1 < batch.runs().size() && batch.runs()[run + 1].row <= i) ++run;
      const std::uint8_t flags = batch.cells<Column::branches_flags>()[i];
      constexpr std::uint8_t kBoth = flow::FROM_KNOWN | flow::TO_KNOWN;
      if ((flags & kBoth) != kBoth) continue;
      rows.push_back({batch.cells<Column::branches_from_ip>()[i], batch.cells<Column::branches_to_ip>()[i],
                      batch.runs()[run].space, batch.cells<Column::branches_kind>()[i],
                      (flags & flow::TIME_KNOWN) != 0, batch.cells<Column::branches_tsc>()[i],
                      batch.counts<Column::branches_instruction>()[i]});
    }
  }

  // Positions of the rows, ascending.
  [[nodiscard]] std::vector<std::uint64_t> positions(PhasesBy by) const {
    std::vector<std::uint64_t> all;
    for (const Row& row : rows) {
      if (by == PhasesBy::INSTRUCTIONS || row.timed)
        all.push_back(by == PhasesBy::TIME ? row.tsc : row.instruction);
    }
    std::sort(all.begin(), all.end());
    return all;
  }

  [[nodiscard]] Counts in_bins(PhasesBy by, const std::vector<std::uint64_t>& limits) const {
    Counts counts;
    for (const Row& row : rows) {
      const std::uint64_t position = by == PhasesBy::TIME ? row.tsc : row.instruction;
      if ((by == PhasesBy::TIME && !row.timed) || position < limits.front() || position >= limits.back())
        continue;
      std::uint32_t bin = 0;
      while (position >= limits[bin + 1]) ++bin;
      ++counts[{bin, row.space, row.from, row.to, row.kind}];
    }
    return counts;
  }
};

Request phases(PhasesBy by, const std::vector<std::uint64_t>& limits) {
  Request request = request_of(TableId::edges, by == PhasesBy::TIME);
  request.bins = limits;
  request.phases_by = by;
  if (by == PhasesBy::INSTRUCTIONS) return request;
  request.selection.by_time = true;
  request.selection.tsc_begin = limits.front();
  request.selection.tsc_end = limits.back();
  return request;
}

Counts counts_of(const Table& table) {
  Counts counts;
  Batch& edges = *table.rows;
  for (std::size_t i = 0; i < edges.rows(); ++i) {
    const auto key =
        std::make_tuple(edges.cells<Column::edges_bin>()[i], edges.cells<Column::edges_space>()[i],
                        edges.cells<Column::edges_from_ip>()[i], edges.cells<Column::edges_to_ip>()[i],
                        edges.cells<Column::edges_kind>()[i]);
    EXPECT_TRUE(counts.empty() || counts.rbegin()->first < key) << "row " << i << " is not in order";
    counts.emplace_hint(counts.end(), key, edges.cells<Column::edges_count>()[i]);
  }
  return counts;
}

std::uint64_t sum(const Counts& counts) {
  std::uint64_t all = 0;
  for (const auto& [key, count] : counts) all += count;
  return all;
}

// Limits at positions of rows, right before and right after them, and anywhere.
std::vector<std::uint64_t> limits_at(const std::vector<std::uint64_t>& positions, std::size_t count,
                                     std::mt19937_64& random) {
  std::vector<std::uint64_t> limits{0, positions.back() + 1};
  if (random() % 4 == 0) limits = {positions[positions.size() / 9], positions[positions.size() / 9 * 8]};
  const std::uint64_t first = limits.front();
  const std::uint64_t last = limits.back();
  while (limits.size() < count + 1) {
    const std::uint64_t at = positions[random() % positions.size()] + random() % 3;
    const std::uint64_t limit = random() % 3 == 0 ? at : std::max<std::uint64_t>(at, 1) - 1;
    if (limit > first && limit < last) limits.push_back(limit);
  }
  std::sort(limits.begin(), limits.end());
  limits.erase(std::unique(limits.begin(), limits.end()), limits.end());
  return limits;
}

void expect_phases(const Bundle& bundle, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const Branches branches(bundle);
  ASSERT_GT(branches.rows.size(), 1000U);
  auto opened = open_index(build_index(bundle, 3000, 2), *bundle);
  ASSERT_TRUE(opened.ok()) << opened.failure().detail;
  for (const PhasesBy by : {PhasesBy::TIME, PhasesBy::INSTRUCTIONS}) {
    const std::vector<std::uint64_t> positions = branches.positions(by);
    if (positions.size() < 1000) continue;
    for (const std::size_t count : {1U, 2U, 5U, 40U}) {
      SCOPED_TRACE(testing::Message() << (by == PhasesBy::TIME ? "time " : "instructions ") << count);
      const std::vector<std::uint64_t> limits = limits_at(positions, count, random);
      const Counts expected = branches.in_bins(by, limits);
      const Request request = phases(by, limits);
      for (const std::size_t threads : {1U, 2U, 3U}) {
        const Table table = read(bundle, request, {.threads = threads, .segment = 2000});
        EXPECT_TRUE(counts_of(table) == expected) << threads << " threads";
      }
      EXPECT_TRUE(counts_of(read(bundle, request, {.fast = false})) == expected);
      EXPECT_TRUE(counts_of(read(bundle, request, {.index = opened.value()})) == expected);
    }
    const std::vector<std::uint64_t> all{0, positions[positions.size() / 2], positions.back() + 1};
    const Counts whole = counts_of(read(bundle, phases(by, {0, positions.back() + 1}), {}));
    EXPECT_EQ(sum(counts_of(read(bundle, phases(by, all), {}))), sum(whole));
    EXPECT_EQ(sum(whole), positions.size());
  }
}

// Edges of all branches, without phases.
std::uint64_t edges_of(const Bundle& bundle) {
  const Table table = read(bundle, request_of(TableId::edges, false), {});
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < table.rows->rows(); ++i) all += table.rows->counts<Column::edges_count>()[i];
  return all;
}

TEST(PhasedSource, CountsRowsOfSimpleDecoder) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    const auto bundle = recording(seed, 0, seed % 2 == 0, seed > 2);
    expect_phases(bundle, seed);
    const std::uint64_t last = Branches(bundle).positions(PhasesBy::INSTRUCTIONS).back();
    const Request request = phases(PhasesBy::INSTRUCTIONS, {0, last / 3, last / 2, last + 1});
    EXPECT_EQ(sum(counts_of(read(bundle, request, {}))), edges_of(bundle));
  }
}

TEST(PhasedSource, CountsRowsBetweenGaps) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    const auto bundle = recording_with_gaps(seed);
    expect_phases(bundle, seed);
  }
}

TEST(PhasedSource, CountsRowsOfChangingCodeAndThreads) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE(seed);
    expect_phases(changing_recording(seed), seed);
  }
}

// Each stream counts from its own begin.
TEST(PhasedSource, CountsSeveralStreams) {
  const auto bundle = recording(3, 0, true, true);
  const auto other = recording(3, 3, true, true);
  trace::Stream second = other->streams[0];
  second.cpu = 1;
  bundle->streams.push_back(second);
  expect_phases(bundle, 3);
}

// Branches alone, so that one pass of the fast path can go over a limit.
Bundle plain_recording(std::uint64_t seed) {
  trace_unit::generator::GeneratorConfig config;
  config.psb_bytes = std::size_t{1} << 16U;
  walk::WalkOptions options;
  options.seed = seed;
  options.steps = 300'000;
  options.async_per_mille = options.async_out_per_mille = options.odd_return_per_mille = 0;
  options.sleep_per_mille = options.ratio_per_mille = 0;
  return flow::roundtrip::bundle_of(walk::random_walk(options), config);
}

// Phases that are longer than what is emitted one by one around a limit.
TEST(PhasedSource, CountsLongPhases) {
  const auto bundle = plain_recording(8);
  const Branches branches(bundle);
  const std::vector<std::uint64_t> positions = branches.positions(PhasesBy::INSTRUCTIONS);
  ASSERT_GT(positions.back(), 20 * flow::BulkRoom::kSlack);
  std::mt19937_64 random(8);
  for (unsigned i = 0; i < 20; ++i) {
    SCOPED_TRACE(i);
    const std::vector<std::uint64_t> limits = limits_at(positions, 1 + i % 5, random);
    const Table table = read(bundle, phases(PhasesBy::INSTRUCTIONS, limits), {.threads = 1 + i % 3});
    EXPECT_TRUE(counts_of(table) == branches.in_bins(PhasesBy::INSTRUCTIONS, limits));
  }
}

// Instructions of a part of the time are those of the stream.
TEST(PhasedSource, SelectsByTimeAndCountsByInstructions) {
  const auto bundle = recording(5, 2, true, true);
  Branches branches(bundle);
  const std::vector<std::uint64_t> times = branches.positions(PhasesBy::TIME);
  const std::vector<std::uint64_t> numbers = branches.positions(PhasesBy::INSTRUCTIONS);
  auto opened = open_index(build_index(bundle, 3000, 1), *bundle);
  ASSERT_TRUE(opened.ok());
  std::mt19937_64 random(5);
  Request request = phases(PhasesBy::INSTRUCTIONS, limits_at(numbers, 7, random));
  request.time = request.selection.by_time = true;
  request.selection.tsc_begin = times[times.size() / 5];
  request.selection.tsc_end = times[times.size() / 5 * 4];
  std::erase_if(branches.rows, [&](const Branches::Row& row) {
    return !row.timed || row.tsc < request.selection.tsc_begin || row.tsc >= request.selection.tsc_end;
  });
  const Counts expected = branches.in_bins(PhasesBy::INSTRUCTIONS, request.bins);
  ASSERT_FALSE(expected.empty());
  EXPECT_TRUE(counts_of(read(bundle, request, {})) == expected);
  EXPECT_TRUE(counts_of(read(bundle, request, {.fast = false})) == expected);
  EXPECT_TRUE(counts_of(read(bundle, request, {.index = opened.value()})) == expected);
}

// Without times no branch is in a phase of time; phases of instructions need none.
TEST(PhasedSource, NeedsNoTimesForInstructions) {
  const auto bundle = recording(2, 0, true, false, false);
  ASSERT_TRUE(Branches(bundle).positions(PhasesBy::TIME).empty());
  expect_phases(bundle, 2);
  EXPECT_TRUE(counts_of(read(bundle, phases(PhasesBy::TIME, {0, 1000, trace::kTscMax}), {})).empty());
}

}  // namespace
}  // namespace ptkit::tables::columns
