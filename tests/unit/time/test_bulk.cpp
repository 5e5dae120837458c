// Many queries at once against the same queries one by one.
#include <gtest/gtest.h>

#include <random>

#include "time/track.h"
#include "unit/time/synthetic.h"

namespace ptkit::time::test {
namespace {

// Queries of decoders: spans of branches, with repetitions, and some with an earlier start.
std::vector<TimeQuery> queries_of(const SyntheticTrace& trace, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<TimeQuery> queries{{0, 0}};
  for (const Truth& branch : trace.branches) {
    const std::uint64_t back = random() % 32 == 0 ? random() % 2000 : 0;
    queries.push_back({branch.since - std::min(branch.since, back), branch.offset});
    if (random() % 64 == 0) queries.push_back({branch.offset, branch.offset});
  }
  queries.push_back({trace.bytes.size(), trace.bytes.size()});
  return queries;
}

// Queries of rows in bulk: successive spans, each once.
std::vector<TimeQuery> spans_of(const SyntheticTrace& trace) {
  std::vector<TimeQuery> queries;
  for (const Truth& branch : trace.branches) {
    if (queries.empty() || queries.back().offset != branch.offset)
      queries.push_back({queries.empty() ? 0 : queries.back().offset, branch.offset});
  }
  return queries;
}

void compare(const SyntheticTrace& trace, const trace::Clock& clock, std::uint64_t seed,
             const std::vector<TimeQuery>& queries) {
  TimeTrack one_by_one(trace.bytes, clock, {});
  TimeTrack bulk(trace.bytes, clock, {});
  std::mt19937_64 random(seed);
  std::vector<TimeRange> ranges;
  for (std::size_t begin = 0; begin < queries.size();) {
    const std::size_t count = std::min<std::size_t>(queries.size() - begin, random() % 700);
    const auto part = std::span(queries).subspan(begin, count);
    ranges.resize(count);
    bulk.at(part, ranges.data());
    for (std::size_t i = 0; i < count; ++i) {
      const TimeRange range = one_by_one.at(part[i].since, part[i].offset);
      ASSERT_EQ(ranges[i].tsc, range.tsc) << begin + i;
      ASSERT_EQ(ranges[i].error, range.error) << begin + i;
      ASSERT_EQ(ranges[i].source, range.source) << begin + i;
      ASSERT_EQ(ranges[i].known, range.known) << begin + i;
    }
    begin += count;
  }
}

void compare(const SyntheticTrace& trace, const trace::Clock& clock, std::uint64_t seed) {
  compare(trace, clock, seed, queries_of(trace, seed));
}

SyntheticConfig config_of(std::uint64_t seed) {
  SyntheticConfig config;
  config.seed = seed;
  config.branches = 8000;
  config.mtc = seed % 5 != 0;
  config.cyc = seed % 3 != 0;
  config.first_branch = seed % 2 == 0;
  config.halts = 5e-4;
  config.sleeps = seed % 4 == 0 ? 1e-3 : 0;
  config.overflows = seed % 4 == 1 ? 1e-3 : 0;
  config.psb_bytes = seed % 2 == 0 ? 2048 : 8192;
  return config;
}

TEST(TimeTrackBulk, EqualsOneByOne) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const SyntheticTrace trace = synthesize(config_of(seed));
    compare(trace, trace.clock, seed);
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(TimeTrackBulk, EqualsOneByOneFromPointToPoint) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SyntheticConfig config = config_of(seed);
    config.cyc = true;
    config.first_branch = seed % 4 == 0;
    const SyntheticTrace trace = synthesize(config);
    ASSERT_GT(spans_of(trace).size(), 1000u);
    compare(trace, trace.clock, seed, spans_of(trace));
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(TimeTrackBulk, EqualsOneByOneWhereTimeGoesBack) {
  SyntheticConfig config = config_of(7);
  SyntheticTrace trace = synthesize(config);
  config.start_tsc /= 2;
  const SyntheticTrace second = synthesize(config);
  const std::uint64_t shift = trace.bytes.size();
  trace.bytes.insert(trace.bytes.end(), second.bytes.begin(), second.bytes.end());
  for (Truth branch : second.branches) {
    branch.since += shift;
    branch.offset += shift;
    trace.branches.push_back(branch);
  }
  compare(trace, trace.clock, 7);
}

// Long TNT packets: earlier queries determine how old branches may be.
TEST(TimeTrackBulk, EqualsOneByOneWithLongTnt) {
  SyntheticTrace trace = synthesize(config_of(4));
  const std::vector<std::uint8_t> packet{0x02, 0xa3, 0xff, 0xff, 0x0f, 0, 0, 0};
  trace.bytes.insert(trace.bytes.begin() + static_cast<std::ptrdiff_t>(trace.branches[100].offset),
                     packet.begin(), packet.end());
  compare(trace, trace.clock, 4);
}

TEST(TimeTrackBulk, NoQueries) {
  TimeTrack track({}, {}, {});
  track.at({}, nullptr);
  EXPECT_FALSE(track.at(0, 0).known);
}

}  // namespace
}  // namespace ptkit::time::test
