// Times of branch records.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "time/track.h"
#include "trace/branch_record.h"

namespace ptkit::time {
namespace {

using trace::BranchRecord;

std::vector<std::uint8_t> records(const std::vector<std::uint64_t>& times, std::size_t more = 0) {
  std::vector<std::uint8_t> bytes(times.size() * sizeof(BranchRecord) + more);
  for (std::size_t i = 0; i < times.size(); ++i) {
    BranchRecord record;
    record.tsc = times[i];
    std::memcpy(bytes.data() + i * sizeof(record), &record, sizeof(record));
  }
  return bytes;
}

std::string text_of(const TimeRange& range) {
  if (!range.known) return "?";
  EXPECT_EQ(range.source, TimeSource::RECORD);
  return std::to_string(range.tsc) + "+" + std::to_string(range.error);
}

std::string times_of(TimeTrack& track, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += text_of(track.at(i, i)) + " ";
  return text;
}

TEST(RecordTimes, AreBetweenRecordedTimes) {
  const auto bytes = records({0, 10, 0, 0, 30, 50, 0});
  TimeTrack track = TimeTrack::of_records(bytes);
  EXPECT_EQ(times_of(track, 7), "? ? 10+20 10+20 10+20 30+20 50+4294967295 ");
  // From the start again, and after the end.
  EXPECT_EQ(times_of(track, 9), "? ? 10+20 10+20 10+20 30+20 50+4294967295 50+4294967295 50+4294967295 ");
}

TEST(RecordTimes, BulkEqualsOneByOne) {
  const auto bytes = records({5, 0, 9});
  TimeTrack track = TimeTrack::of_records(bytes);
  const std::vector<TimeQuery> queries{{0, 0}, {1, 1}, {1, 2}, {2, 2}};
  std::vector<TimeRange> answers(queries.size());
  track.at(queries, answers.data());
  EXPECT_EQ(text_of(answers[0]), "?");
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(text_of(answers[i]), "5+4");
  EXPECT_EQ(track.all_before_until(1, 100), 1U);
  EXPECT_FALSE(track.from({}).has_value());
}

TEST(RecordTimes, NeverGoBack) {
  const auto bytes = records({100, 50, 0, 200});
  TimeTrack track = TimeTrack::of_records(bytes);
  EXPECT_EQ(times_of(track, 4), "? 100+0 100+100 100+100 ");
}

TEST(RecordTimes, AreUnknownWithoutRecordedTimes) {
  const auto bytes = records({0, 0, 0}, 7);
  TimeTrack track = TimeTrack::of_records(bytes);
  EXPECT_EQ(times_of(track, 5), "? ? ? ? ? ");
  TimeTrack empty = TimeTrack::of_records({});
  EXPECT_EQ(times_of(empty, 2), "? ? ");
}

TEST(RecordTimes, DistantTimesHaveNoUpperLimit) {
  const auto bytes = records({1, 0, std::uint64_t{1} << 40U});
  TimeTrack track = TimeTrack::of_records(bytes);
  EXPECT_EQ(times_of(track, 3), "? 1+4294967295 1+4294967295 ");
}

}  // namespace
}  // namespace ptkit::time
