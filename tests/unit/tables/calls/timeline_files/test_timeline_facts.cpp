// Facts that all files of timelines have, and the sink of their bytes.
#include <gtest/gtest.h>

#include <set>

#include "unit/tables/calls/timeline_files/made_timeline.h"

namespace ptkit::tables::calls {
namespace {

TEST(ByteSink, GivesChunksInOrder) {
  std::string all;
  std::size_t chunks = 0;
  ByteSink sink([&](std::string_view chunk) {
    all += chunk;
    ++chunks;
    return true;
  });
  std::string expected;
  for (int i = 0; i < 300'000; ++i) {
    const std::string part = std::to_string(i) + ",";
    expected += part;
    sink.put(part);
  }
  EXPECT_EQ(sink.bytes(), expected.size());
  EXPECT_TRUE(sink.finish());
  EXPECT_EQ(all, expected);
  EXPECT_EQ(chunks, 2U);
  EXPECT_EQ(sink.bytes(), expected.size());
}

TEST(ByteSink, DropsBytesAfterAFailure) {
  std::size_t calls = 0;
  ByteSink sink([&](std::string_view) {
    ++calls;
    return false;
  });
  const std::string chunk(1 << 20, 'x');
  for (int i = 0; i < 3; ++i) sink.put(chunk);
  EXPECT_TRUE(sink.stopped());
  EXPECT_FALSE(sink.finish());
  EXPECT_EQ(calls, 1U);
}

TEST(Positions, ConvertTicksFromTheBegin) {
  trace::Clock clock;
  clock.tsc_hz = 2'000'000'000;
  const Positions positions(clock, 10'000);
  EXPECT_EQ(positions.begin_ns(), 5'000U);
  EXPECT_EQ(positions.ns(10'000), 0U);
  EXPECT_EQ(positions.ns(10'007), 3U);
  EXPECT_EQ(positions.ns(9'000), 0U);  // never before the begin
  EXPECT_EQ(positions.length_ns(40), 20U);
  EXPECT_EQ(positions.length_ns(UINT64_MAX), positions.ns(UINT64_MAX));
  EXPECT_TRUE(positions.is_time());
  const Positions instructions;
  EXPECT_EQ(instructions.ns(17), 17U);
  EXPECT_EQ(instructions.length_ns(17), 17U);
  EXPECT_EQ(instructions.begin_ns(), 0U);
}

TEST(Positions, BeginAtZeroBeforeTheClocksZero) {
  trace::Clock clock;
  clock.perf_time_known = true;
  clock.time_mult = 1;
  clock.time_zero = static_cast<std::uint64_t>(-500);
  const Positions positions(clock, 100);
  EXPECT_EQ(positions.begin_ns(), 0U);
  EXPECT_EQ(positions.ns(150), 50U);
}

TEST(FileTracks, GiveEachThreadItsNumbersOnce) {
  MadeTimeline timeline;
  timeline.add_track(5, 6);
  timeline.add_track(5, 6).stack = 1;
  timeline.add_track(5, 6).stream = 3;
  timeline.add_track(5, 7);
  timeline.add_track(trace::kNoId, 8);
  timeline.add_track(trace::kNoId, trace::kNoId);
  timeline.add_track(5, trace::kNoId);
  TimelineFacts facts = made_facts(timeline, 0);
  FileTracks tracks(timeline, facts);
  EXPECT_EQ(tracks.at(0).tid, 6);
  EXPECT_EQ(tracks.at(0).name, "thread 6");
  EXPECT_EQ(tracks.at(1).name, "thread 6 (stack 2)");
  EXPECT_EQ(tracks.at(2).name, "thread 6 (stream 3)");
  EXPECT_EQ(tracks.at(2).first, 0U);
  EXPECT_EQ(tracks.at(3).tid, 7);
  EXPECT_EQ(tracks.at(4).pid, 8);
  EXPECT_FALSE(tracks.at(5).ids_known);
  EXPECT_EQ(tracks.at(5).pid, tracks.at(5).tid);
  EXPECT_EQ(tracks.at(6).pid, 5);
  std::set<std::int64_t> tids = {tracks.unused_tid()};
  for (std::size_t i = 0; i < 7; ++i) EXPECT_TRUE(tids.insert(tracks.at(i).tid).second) << i;
  EXPECT_LE(*tids.rbegin(), INT32_MAX);
}

TEST(TimelineBands, OfOneKindDoNotOverlap) {
  Track track;
  track.bands = {{10, 20, Band::Kind::LOST},
                 {12, 30, Band::Kind::UNTRACED},
                 {15, 25, Band::Kind::LOST},
                 {16, 18, Band::Kind::LOST}};
  const auto lanes = bands_by_kind(track);
  ASSERT_EQ(lanes[0].size(), 1U);
  EXPECT_TRUE(lanes[1].empty());
  ASSERT_EQ(lanes[2].size(), 3U);
  EXPECT_EQ(lanes[2][1].begin, 20U);
  EXPECT_EQ(lanes[2][1].end, 25U);
  EXPECT_EQ(lanes[2][2].begin, 25U);
  EXPECT_EQ(lanes[2][2].end, 25U);
}

TEST(BranchRates, AddUpToTheCounts) {
  Track track;
  track.counts = {{100, 7}, {100, 9}, {300, 109}, {300, 109}, {500, 209}};
  const auto rates = branch_rates(track, {});
  ASSERT_EQ(rates.size(), 3U);
  EXPECT_EQ(rates[0].ns, 100U);
  EXPECT_EQ(rates[2].rate, 0);
  double branches = 0;
  for (std::size_t i = 0; i + 1 < rates.size(); ++i)
    branches += rates[i].rate * static_cast<double>(rates[i + 1].ns - rates[i].ns) / 1000;
  EXPECT_DOUBLE_EQ(branches, 202);
  EXPECT_TRUE(branch_rates(Track{}, {}).empty());
  EXPECT_TRUE(branch_rates(track, {}, 0).empty());
  for (std::uint64_t i = 6; i < 1000; ++i) track.counts.push_back({i * 100, i * 70});
  for (const std::size_t most : {1U, 7U, 100U}) {
    const auto few = branch_rates(track, {}, most);
    EXPECT_LE(few.size(), most + 1);
    EXPECT_GE(few.size(), most / 2 + 1);
    double all = 0;
    for (std::size_t i = 0; i + 1 < few.size(); ++i)
      all += few[i].rate * static_cast<double>(few[i + 1].ns - few[i].ns) / 1000;
    EXPECT_NEAR(all, 999 * 70 - 7, 1e-6);
  }
  track.counts = {{100, 7}};
  EXPECT_TRUE(branch_rates(track, {}).empty());
}

TEST(Slices, SayHowMuchTheirCallsCover) {
  Slice slice;
  slice.begin = 10;
  slice.end = 20;
  slice.covered = 4;
  EXPECT_DOUBLE_EQ(covered_share(slice), 0.4);
  slice.end = 10;
  EXPECT_DOUBLE_EQ(covered_share(slice), 1);
  EXPECT_EQ(text_of(CallKind::SIGNAL), "SIGNAL");
  EXPECT_EQ(text_of(CallEnd::UNWIND), "UNWIND");
}

}  // namespace
}  // namespace ptkit::tables::calls
