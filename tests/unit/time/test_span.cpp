// First and last times of streams, found at their ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "time/span.h"
#include "time/track.h"
#include "trace/branch_record.h"
#include "unit/time/synthetic.h"

namespace ptkit::time {
namespace {

trace::Stream stream_of(std::vector<std::uint8_t> bytes) {
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(std::move(bytes));
  return stream;
}

std::vector<std::uint8_t> records(const std::vector<std::uint64_t>& times) {
  std::vector<std::uint8_t> bytes(times.size() * sizeof(trace::BranchRecord));
  for (std::size_t i = 0; i < times.size(); ++i) {
    trace::BranchRecord record;
    record.tsc = times[i];
    std::memcpy(bytes.data() + i * sizeof record, &record, sizeof record);
  }
  return bytes;
}

constexpr std::uint8_t kPsb[] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};

void put_psb(std::vector<std::uint8_t>& bytes) {
  bytes.insert(bytes.end(), std::begin(kPsb), std::end(kPsb));
}

void put_tsc(std::vector<std::uint8_t>& bytes, std::uint64_t tsc) {
  bytes.push_back(0x19);
  for (unsigned i = 0; i < 7; ++i) bytes.push_back(static_cast<std::uint8_t>(tsc >> (8 * i)));
}

std::optional<TimeSpan> span_of(std::vector<std::uint8_t> bytes) {
  return time::span_of(stream_of(std::move(bytes)), {}, {});
}

TEST(HasTsc, IsTrueWhereverOneIs) {
  const auto has = [](const std::vector<std::uint8_t>& bytes) { return has_tsc(bytes, {}); };
  std::vector<std::uint8_t> bytes;
  EXPECT_FALSE(has(bytes));
  put_tsc(bytes, 7);
  EXPECT_FALSE(has(bytes)) << "before the first PSB nothing is read";
  put_psb(bytes);
  bytes.insert(bytes.end(), 300'000, 0x06);  // TNT packets
  EXPECT_FALSE(has(bytes));
  put_psb(bytes);
  EXPECT_FALSE(has(bytes));
  put_tsc(bytes, 7);
  EXPECT_TRUE(has(bytes));
}

TEST(TimeSpan, CoversAllPackets) {
  for (const bool cyc : {false, true}) {
    for (std::uint64_t seed = 1; seed < 9; ++seed) {
      test::SyntheticConfig config;
      config.seed = seed;
      config.cyc = cyc;
      const test::SyntheticTrace made = test::synthesize(config);
      const auto span = time::span_of(stream_of(made.bytes), made.clock, {});
      ASSERT_TRUE(span.has_value());
      TimeTrack track(made.bytes, made.clock, {});
      TimeRange range;
      std::uint64_t first = 0;
      for (const test::Truth& packet : made.packets) {
        range = track.at(packet.offset, packet.offset);
        if (first == 0 && range.known) first = range.tsc;
      }
      EXPECT_EQ(span->first, first);
      // From the last PSB+ on, estimates need not be the same to the tick.
      EXPECT_NEAR(static_cast<double>(span->last), static_cast<double>(range.tsc), 100);
    }
  }
}

// At all distances from the beginning: packets are decoded one by one at first, and counted in steps after
// that.
TEST(TimeSpan, FindsFirstTscAnywhere) {
  for (const std::size_t skipped : {0U, 100U}) {
    for (std::size_t size = 0; size < 140'000; size = size * 9 / 8 + 61) {
      std::vector<std::uint8_t> bytes(skipped, 0x19);  // before the first PSB nothing is a packet
      put_psb(bytes);
      while (bytes.size() < skipped + 16 + size) bytes.push_back(bytes.size() % 3 == 0 ? 0x06 : 0);
      put_tsc(bytes, 1000 + size);
      put_tsc(bytes, 5'000'000);
      const auto span = span_of(bytes);
      ASSERT_TRUE(span.has_value()) << size;
      EXPECT_EQ(span->first, 1000 + size);
      EXPECT_EQ(span->last, 5'000'000U);
    }
  }
}

// Bytes between damage and the next PSB are no packets.
TEST(TimeSpan, SkipsDamage) {
  for (const std::size_t size : {10U, 50'000U}) {
    std::vector<std::uint8_t> bytes;
    put_psb(bytes);
    bytes.resize(bytes.size() + size);
    bytes.insert(bytes.end(), {0x02, 0xFF});
    put_tsc(bytes, 111);
    bytes.resize(bytes.size() + 40'000);
    put_psb(bytes);
    bytes.resize(bytes.size() + 70'000);
    put_tsc(bytes, 222);
    EXPECT_EQ(span_of(bytes), (TimeSpan{222, 222})) << size;
  }
}

TEST(TimeSpan, SkipsPsbsWithoutTsc) {
  std::vector<std::uint8_t> bytes(100'000, 0);
  put_psb(bytes);
  bytes.resize(bytes.size() + 100'000);
  put_psb(bytes);
  put_tsc(bytes, 500);
  for (int i = 0; i < 3; ++i) {
    put_psb(bytes);
    bytes.resize(bytes.size() + 100'000);
  }
  EXPECT_EQ(span_of(bytes), (TimeSpan{500, 500}));
  put_psb(bytes);
  put_tsc(bytes, 700);
  put_tsc(bytes, 900);
  EXPECT_EQ(span_of(bytes), (TimeSpan{500, 900}));
}

// Recorders write PSB+ and timing packets for threads that ended long before.
TEST(TimeSpan, EndsAtTheLastRow) {
  std::vector<std::uint8_t> bytes;
  const auto put_psb_plus = [&bytes](std::uint64_t tsc) {
    put_psb(bytes);
    put_tsc(bytes, tsc);
    bytes.insert(bytes.end(), {0x02, 0x03, 30, 0, 0x99, 0x01, 0x02, 0x23});  // CBR, MODE.Exec, PSBEND
  };
  put_psb_plus(100);
  bytes.push_back(0x06);  // TNT
  put_tsc(bytes, 200);
  bytes.insert(bytes.end(), {0x02, 0x03, 30, 0});
  put_psb_plus(300);
  EXPECT_EQ(span_of(bytes), (TimeSpan{100, 100}));
  bytes.push_back(0x06);
  EXPECT_EQ(span_of(bytes), (TimeSpan{100, 300}));
  for (std::uint64_t i = 0; i < 5000; ++i) put_psb_plus(400 + i);  // beyond the first search range
  EXPECT_EQ(span_of(bytes), (TimeSpan{100, 300}));
  put_psb(bytes);  // without a time: that of the PSB+ before holds
  bytes.insert(bytes.end(), {0x02, 0x23, 0x06});
  EXPECT_EQ(span_of(bytes), (TimeSpan{100, 5399}));
}

TEST(TimeSpan, IsNoneWithoutTsc) {
  EXPECT_FALSE(span_of({}).has_value());
  EXPECT_FALSE(span_of(std::vector<std::uint8_t>(1000, 0)).has_value());
  std::vector<std::uint8_t> bytes;
  put_tsc(bytes, 500);  // before the first PSB
  put_psb(bytes);
  EXPECT_FALSE(span_of(bytes).has_value());
}

TEST(TimeSpan, ContinuesAfterBadPackets) {
  std::vector<std::uint8_t> bytes;
  put_psb(bytes);
  bytes.insert(bytes.end(), {0x02, 0xff, 0x02, 0xff});
  put_psb(bytes);
  put_tsc(bytes, 77);
  bytes.insert(bytes.end(), {0x02, 0xff});
  EXPECT_EQ(span_of(bytes), (TimeSpan{77, 77}));
}

TEST(TimeSpan, CoversRecordedTimesOfBranchRecords) {
  trace::Stream stream = stream_of(records({0, 10, 0, 0, 30, 50, 0}));
  stream.kind = trace::StreamKind::BRANCH_RECORDS;
  EXPECT_EQ(time::span_of(stream, {}, {}), (TimeSpan{10, 50}));
  stream.data = trace::TraceBuffer::from_vector(records({0, 0}));
  EXPECT_FALSE(time::span_of(stream, {}, {}).has_value());
}

}  // namespace
}  // namespace ptkit::time
