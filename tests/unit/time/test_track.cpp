// Times against known true times.
// Measured on such streams of 100000 branches (MTC every 672 ticks, CBR 8..35): error of the interval's
// middle for branches in TSC ticks, median / 99th percentile, and that of libipt 2.0.5's query decoder on the
// same bytes.
//                              ours          libipt 2.0.5
//   TSC+MTC                    127 / 324     292 / 652
//   TSC+MTC, halts             132 / 324     302 / 653
//   with CYC                   17 / 140      22 / 240
//   with CYC, halts            14.5 / 116    24 / 594
//   CYC as in hardware         16 / 129      19 / 216
//   CYC threshold 32           23 / 160      35 / 278
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "time/track.h"
#include "unit/time/synthetic.h"

namespace ptkit::time::test {
namespace {

constexpr std::uint64_t kNoUpperLimit = 0xffffffff;

// Results of queries for all positions of a trace.
struct Outcome {
  Spread error;  // of the middle
  Spread width;
  std::size_t positions = 0;
  std::size_t unknown = 0;
  std::size_t open = 0;  // no upper limit
  std::array<std::size_t, 5> sources{};
};

Outcome measure(const SyntheticTrace& trace, const std::vector<Truth>& positions, const trace::Clock& clock) {
  TimeTrack track(trace.bytes, clock, {});
  Outcome outcome;
  std::vector<double> errors;
  std::vector<double> widths;
  std::uint64_t last = 0;
  for (const Truth& position : positions) {
    const TimeRange range = track.at(position.since, position.offset);
    ++outcome.positions;
    if (!range.known) {
      EXPECT_EQ(range.tsc, 0U);
      ++outcome.unknown;
      continue;
    }
    ++outcome.sources[static_cast<std::size_t>(range.source)];
    EXPECT_GE(range.tsc, last) << "time went back at " << position.offset;
    last = range.tsc;
    EXPECT_LE(range.tsc, position.tsc) << "at " << position.offset;
    if (range.error == kNoUpperLimit) {
      ++outcome.open;
      continue;
    }
    EXPECT_GE(range.tsc + range.error, position.tsc) << "at " << position.offset;
    errors.push_back(
        std::abs(static_cast<double>(range.tsc) + range.error / 2.0 - static_cast<double>(position.tsc)));
    widths.push_back(range.error);
    if (testing::Test::HasNonfatalFailure()) break;
  }
  outcome.error = spread_of(errors);
  outcome.width = spread_of(widths);
  return outcome;
}

Outcome branches(const SyntheticConfig& config) {
  const SyntheticTrace trace = synthesize(config);
  return measure(trace, trace.branches, trace.clock);
}
Outcome packets(const SyntheticConfig& config) {
  const SyntheticTrace trace = synthesize(config);
  return measure(trace, trace.packets, trace.clock);
}

SyntheticConfig with_cyc() {
  SyntheticConfig config;
  config.cyc = true;
  return config;
}

constexpr double kMtcGap = 672;

TEST(TimeTrack, TscAlone) {
  SyntheticConfig config;
  config.mtc = false;
  const Outcome outcome = branches(config);
  EXPECT_EQ(outcome.sources[static_cast<std::size_t>(TimeSource::TSC)], outcome.positions);
  EXPECT_GT(outcome.open, 0U);  // after the last TSC nothing bounds time from above
  EXPECT_LT(outcome.open, outcome.positions / 8);
}

TEST(TimeTrack, MtcIsMoreAccurateThanPerf) {
  const Outcome outcome = branches({});
  EXPECT_LT(outcome.error.median, 180);
  EXPECT_LT(outcome.error.p99, 380);
  EXPECT_EQ(outcome.sources[static_cast<std::size_t>(TimeSource::MTC)], outcome.positions);
  const Outcome of_packets = packets({});
  EXPECT_LE(of_packets.width.median, kMtcGap);
  EXPECT_LT(of_packets.error.median, 180);
}

TEST(TimeTrack, CycIsMoreAccurateThanPerf) {
  const Outcome outcome = branches(with_cyc());
  EXPECT_LT(outcome.error.median, 20);
  EXPECT_LT(outcome.error.p99, 194);
  EXPECT_GT(outcome.sources[static_cast<std::size_t>(TimeSource::CYC)], outcome.positions * 99 / 100);
  const Outcome of_packets = packets(with_cyc());
  EXPECT_LT(of_packets.error.median, 2);
  EXPECT_LT(of_packets.width.median, 10);
}

TEST(TimeTrack, CycOfFirstBranchAsInHardware) {
  SyntheticConfig config = with_cyc();
  config.first_branch = true;
  EXPECT_LT(branches(config).error.median, 20);
  EXPECT_LT(packets(config).error.median, 2);
}

TEST(TimeTrack, CycWithRoundedDifferences) {
  SyntheticConfig config = with_cyc();
  config.floor_each_cyc = true;
  EXPECT_LT(branches(config).error.median, 20);
  EXPECT_LT(packets(config).width.median, 24);
}

TEST(TimeTrack, CycThreshold) {
  for (const bool first : {false, true}) {
    SyntheticConfig config = with_cyc();
    config.cyc_threshold = 64;
    config.first_branch = first;
    EXPECT_LT(branches(config).error.median, 45);
  }
}

TEST(TimeTrack, LateCbr) {
  SyntheticConfig config = with_cyc();
  config.ratio_lag = 300;
  EXPECT_LT(branches(config).error.median, 24);
}

TEST(TimeTrack, HaltedCoreClock) {
  SyntheticConfig config;
  config.halts = 1e-3;
  EXPECT_LT(branches(config).error.median, 180);
  config.cyc = true;
  EXPECT_LT(branches(config).error.median, 20);
  EXPECT_LT(packets(config).error.median, 2);
  config.mtc = false;  // a halt may be anywhere between two TSCs then
  config.halts = 1e-4;
  EXPECT_LT(branches(config).error.median, 60);
}

TEST(TimeTrack, SleepsWithoutPackets) {
  for (const bool wake_tsc : {false, true}) {
    SyntheticConfig config;
    config.sleeps = 1e-3;
    config.wake_tsc = wake_tsc;
    EXPECT_LT(branches(config).error.median, 180) << wake_tsc;
    config.cyc = true;
    EXPECT_LT(branches(config).error.median, 20) << wake_tsc;
  }
}

// More than 256 MTC periods: the payload wraps without a packet.
TEST(TimeTrack, LongSleeps) {
  SyntheticConfig config;
  config.sleep_ticks = 400'000;
  config.sleeps = 1e-4;
  EXPECT_LT(branches(config).error.median, 180);
  config.wake_tsc = false;  // without it the number of wraps may be unknown
  config.sleeps = 1e-3;
  static_cast<void>(branches(config));
  config.cyc = true;
  static_cast<void>(branches(config));
}

// A sleep of 256 MTC periods has no visible gap. A TSC outside of PSB+ is the wake-up.
TEST(TimeTrack, SleepOfWholeWraps) {
  const trace::Clock clock = synthesize({}).clock;
  constexpr std::uint64_t kGap = 672;
  constexpr std::uint64_t kWrap = 256 * kGap;
  for (const bool in_psb : {false, true}) {
    std::vector<std::uint8_t> bytes;
    const auto add = [&bytes](std::initializer_list<std::uint8_t> more) { bytes.insert(bytes.end(), more); };
    const auto psb = [&add] {
      for (int i = 0; i < 8; ++i) add({0x02, 0x82});
    };
    const auto tsc_tma = [&](std::uint64_t tsc, std::uint8_t ctc) {
      add({0x19});
      for (unsigned i = 0; i < 7; ++i) add({static_cast<std::uint8_t>(tsc >> 8 * i)});
      add({0x02, 0x73, ctc, 0, 0, 0, 0});
    };
    psb();
    tsc_tma(1'000'000, 0);
    add({0x02, 0x23});
    for (std::uint8_t i = 1; i <= 3; ++i) add({0x59, i, 0x06});  // MTC, TNT
    const std::uint64_t before = bytes.size() - 4;  // the TNT between the second MTC and the third
    if (in_psb) psb();
    tsc_tma(1'000'000 + 2 * kWrap + 3 * kGap, 3 << 3);
    if (in_psb) add({0x02, 0x23});
    add({0x06});
    TimeTrack track(bytes, clock, {});
    const TimeRange range = track.at(before, before);
    EXPECT_EQ(range.tsc, 1'000'000U + 2 * kGap);
    EXPECT_EQ(range.error, in_psb ? kGap + 2 * kWrap : kGap);
  }
}

TEST(TimeTrack, LostMtc) {
  SyntheticConfig config;
  config.mtc_loss = 0.1;
  EXPECT_LT(branches(config).error.median, 180);
  config.cyc = true;
  EXPECT_LT(branches(config).error.median, 20);
}

TEST(TimeTrack, Overflows) {
  SyntheticConfig config = with_cyc();
  config.overflows = 1e-3;
  EXPECT_LT(branches(config).error.median, 24);
}

TEST(TimeTrack, FractionalRatio) {
  SyntheticConfig config = with_cyc();
  config.numerator = 177;
  config.halts = 1e-4;
  EXPECT_LT(branches(config).error.median, 20);
  config.cyc = false;
  EXPECT_LE(packets(config).width.median, kMtcGap * 177 / 168 + 4);
}

TEST(TimeTrack, EveryMtcPeriod) {
  for (const unsigned period : {0U, 5U, 8U, 10U}) {
    SyntheticConfig config;
    config.mtc_period = period;
    config.branches = 20'000;
    config.psb_bytes = period > 8 ? 16'384 : 4096;
    const Outcome outcome = packets(config);
    EXPECT_LE(outcome.width.median, 84.0 * (1U << period)) << period;
  }
}

// More points than a frame may have without a TSC: the frame is cut, and time continues.
TEST(TimeTrack, SingleTsc) {
  SyntheticConfig config = with_cyc();
  config.psb_bytes = std::uint64_t{1} << 40;
  config.branches = 400'000;
  config.halts = 1e-4;
  const Outcome outcome = branches(config);
  EXPECT_LT(outcome.error.median, 20);
  EXPECT_LT(outcome.open, 10U);
  config.mtc = false;  // and no other point: from below alone, and only by CBR
  const Outcome alone = branches(config);
  EXPECT_EQ(alone.open, alone.positions);
  EXPECT_GT(alone.sources[static_cast<std::size_t>(TimeSource::CBR)], alone.positions * 9 / 10);
}

TEST(TimeTrack, TscWraps) {
  SyntheticConfig config = with_cyc();
  config.start_tsc = (std::uint64_t{1} << 56) - 3'000'000;
  EXPECT_LT(branches(config).error.median, 20);
}

TEST(TimeTrack, ManySeeds) {
  for (std::uint64_t seed = 10; seed < 22; ++seed) {
    SyntheticConfig config;
    config.seed = seed;
    config.branches = 6000;
    config.cyc = seed % 3 != 0;
    config.cyc_threshold = seed % 5 == 0 ? 32 : 0;
    config.first_branch = seed % 2 == 0;
    config.halts = 5e-4;
    config.sleeps = 5e-4;
    config.wake_tsc = seed % 4 < 2;
    config.ratio_changes = 2e-3;
    config.psb_bytes = seed % 2 == 0 ? 2048 : 8192;
    static_cast<void>(branches(config));
    static_cast<void>(packets(config));
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

TEST(TimeTrack, MissingParametersAreInferred) {
  SyntheticConfig config = with_cyc();
  config.halts = 1e-4;
  const SyntheticTrace trace = synthesize(config);
  const Outcome outcome = measure(trace, trace.branches, {});
  EXPECT_LT(outcome.error.median, 20);
  config.numerator = 177;
  const SyntheticTrace odd = synthesize(config);
  EXPECT_LT(measure(odd, odd.branches, {}).error.median, 20);
}

TEST(TimeTrack, ParametersNotInferable) {
  SyntheticConfig config;
  config.branches = 1500;  // one PSB interval and a bit: no second TMA to compare with
  const SyntheticTrace trace = synthesize(config);
  const Outcome outcome = measure(trace, trace.branches, {});
  EXPECT_EQ(outcome.sources[static_cast<std::size_t>(TimeSource::MTC)], 0U);
  EXPECT_EQ(outcome.sources[static_cast<std::size_t>(TimeSource::TSC)], outcome.positions);
}

TEST(TimeTrack, WrongRatioWidensIntervals) {
  SyntheticConfig config = with_cyc();
  const SyntheticTrace trace = synthesize(config);
  trace::Clock clock = trace.clock;
  clock.max_nonturbo_ratio = 36;  // cycles seem longer than they are
  EXPECT_LT(measure(trace, trace.branches, clock).error.median, 30);
  clock.max_nonturbo_ratio = 12;
  static_cast<void>(measure(trace, trace.branches, clock));
}

TEST(TimeTrack, EmptyAndUnsynchronised) {
  const std::vector<std::uint8_t> zeros(64, 0);
  TimeTrack empty({}, {}, {});
  EXPECT_FALSE(empty.at(0, 0).known);
  TimeTrack unsynchronised(zeros, {}, {});
  EXPECT_FALSE(unsynchronised.at(0, 63).known);
}

// Skipping packets up to all_before_until() changes no answer, and none of them reaches the time.
TEST(TimeTrack, AllBeforeUntilChangesNoAnswer) {
  constexpr std::uint64_t kStride = 100'000;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    SyntheticConfig config;
    config.seed = seed;
    config.branches = 50'000;
    config.mtc = seed % 5 != 0;
    config.cyc = seed % 3 != 0;
    config.first_branch = seed % 2 == 0;
    config.psb_bytes = 512U << seed % 3;
    if (seed % 4 == 0) config.overflows = 1e-3;
    const SyntheticTrace trace = synthesize(config);
    TimeTrack all(trace.bytes, trace.clock, {});
    TimeTrack few(trace.bytes, trace.clock, {});
    std::uint64_t quiet = 0;
    std::uint64_t limit = 0;
    std::size_t asked = 0;
    for (const Truth& packet : trace.packets) {
      const TimeRange range = all.at(packet.offset, packet.offset);
      if (packet.offset < quiet) {
        ASSERT_LT(range.tsc + range.error, limit) << packet.offset;
        continue;
      }
      const TimeRange same = few.at(packet.offset, packet.offset);
      ++asked;
      ASSERT_EQ(range.tsc, same.tsc) << packet.offset;
      ASSERT_EQ(range.error, same.error) << packet.offset;
      ASSERT_EQ(range.source, same.source) << packet.offset;
      if (range.known) limit = (range.tsc / kStride + 1) * kStride;
      quiet = few.all_before_until(packet.offset, limit);
    }
    EXPECT_LT(asked, trace.packets.size() / 4);
  }
}

// The first TSC comes late, or never: no time is known before it, whatever other packets there are.
TEST(TimeTrack, LateFirstTsc) {
  const SyntheticTrace trace = synthesize({});
  const std::size_t least = std::size_t{3} << 18U;
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 8; ++i) bytes.insert(bytes.end(), {0x02, 0x82});
  bytes.insert(bytes.end(), {0x02, 0x23});
  while (bytes.size() < least) bytes.insert(bytes.end(), {0x06, 0x1b, 0x59, 0x01});  // TNT, CYC, MTC
  const std::uint64_t begin = bytes.size();
  for (const bool never : {true, false}) {
    if (!never) bytes.insert(bytes.end(), trace.bytes.begin(), trace.bytes.end());
    TimeTrack track(bytes, trace.clock, {});
    std::size_t known = 0;
    for (std::uint64_t offset = 0; offset < begin; offset += 1000) known += track.at(offset, offset).known;
    EXPECT_EQ(known, 0U);
    if (never) continue;
    for (const Truth& branch : trace.branches) {
      const TimeRange range = track.at(begin + branch.since, begin + branch.offset);
      if (!range.known) continue;
      ++known;
      EXPECT_LE(range.tsc, branch.tsc);
      EXPECT_GE(range.tsc + range.error, branch.tsc);
    }
    EXPECT_GT(known, trace.branches.size() / 2);
  }
}

TEST(TimeTrack, GarbageBeforeFirstPsb) {
  SyntheticTrace trace = synthesize({});
  trace.bytes.insert(trace.bytes.begin(), 16, 0xff);
  TimeTrack track(trace.bytes, trace.clock, {});
  EXPECT_FALSE(track.at(0, 0).known);
  EXPECT_EQ(track.at(0, 16).tsc, trace.packets.front().tsc);
}

// Bytes are missing in the middle: the track continues at the next PSB, and stays correct.
TEST(TimeTrack, KnownLoss) {
  SyntheticTrace trace = synthesize(with_cyc());
  const std::uint64_t from = trace.bytes.size() / 3;
  const std::uint64_t cut = 5001;
  trace.bytes.erase(trace.bytes.begin() + static_cast<std::ptrdiff_t>(from),
                    trace.bytes.begin() + static_cast<std::ptrdiff_t>(from + cut));
  const std::vector<trace::KnownLoss> losses{{from, base::Status::RING_WRAPPED, cut}};
  TimeTrack track(trace.bytes, trace.clock, {}, losses);
  std::size_t checked = 0;
  for (const Truth& position : trace.packets) {
    if (position.offset >= from && position.offset < from + cut + 4096 + 64) continue;
    const std::uint64_t at = position.offset < from ? position.offset : position.offset - cut;
    const TimeRange range = track.at(at, at);
    ASSERT_LE(range.tsc, position.tsc) << at;
    ASSERT_GE(range.tsc + range.error, position.tsc) << at;
    ++checked;
  }
  EXPECT_GT(checked, trace.packets.size() / 2);
}

// A row may be older than its packet. Repeating an earlier query is cheap and gives the same answer.
TEST(TimeTrack, SameQuerySameAnswer) {
  const SyntheticTrace trace = synthesize(with_cyc());
  TimeTrack track(trace.bytes, trace.clock, {});
  const std::uint64_t half = trace.bytes.size() / 2;
  const TimeRange first = track.at(half, half + 5000);
  const TimeRange again = track.at(half, half + 5000);
  EXPECT_EQ(first.tsc, again.tsc);
  EXPECT_EQ(first.error, again.error);
  EXPECT_GE(track.at(half, half).tsc, first.tsc);
}

TEST(TimeTrack, DecreasingTsc) {
  SyntheticConfig config;
  config.branches = 4000;
  SyntheticTrace first = synthesize(config);
  config.start_tsc /= 2;
  const SyntheticTrace second = synthesize(config);
  first.bytes.insert(first.bytes.end(), second.bytes.begin(), second.bytes.end());
  TimeTrack track(first.bytes, first.clock, {});
  std::uint64_t last = 0;
  for (std::uint64_t at = 0; at < first.bytes.size(); at += 7) {
    const TimeRange range = track.at(at, at);
    ASSERT_GE(range.tsc, last);
    last = range.tsc;
  }
  EXPECT_EQ(track.at(first.bytes.size(), first.bytes.size()).error, kNoUpperLimit);
}

}  // namespace
}  // namespace ptkit::time::test
