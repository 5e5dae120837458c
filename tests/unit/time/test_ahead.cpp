// Tracks that begin ahead of their turn against one that begins at the beginning.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "time/track.h"
#include "unit/time/synthetic.h"

namespace ptkit::time::test {
namespace {

struct Scene {
  SyntheticTrace trace;
  std::vector<Question> questions;  // as decoders ask: nothing is older than the PSB+ before it
  std::vector<PsbTime> psbs;
  std::vector<trace::KnownLoss> losses;

  explicit Scene(SyntheticTrace made) : trace(std::move(made)), psbs(psb_times(trace.bytes, {})) {
    auto next = psbs.begin();
    std::uint64_t psb = 0;
    for (const Truth& branch : trace.branches) {
      for (; next != psbs.end() && next->psb <= branch.offset; ++next) psb = next->psb;
      questions.push_back({std::max(branch.since, psb), branch.offset});
    }
  }

  [[nodiscard]] TimeTrack track(const trace::Clock& clock) const {
    return {trace.bytes, clock, packet::Errata{}, losses};
  }
  // Questions of the interval that begins with a PSB.
  [[nodiscard]] std::span<const Question> of(std::size_t interval) const {
    const auto at = [this](std::size_t index) {
      if (index >= psbs.size()) return questions.end();
      return std::partition_point(
          questions.begin(), questions.end(),
          [this, index](const Question& question) { return question.offset < psbs[index].psb; });
    };
    return {at(interval), at(interval + 1)};
  }
};

std::vector<TimeRange> ask(TimeTrack& track, std::span<const Question> questions) {
  std::vector<TimeRange> ranges(questions.size());
  track.at(questions, ranges.data());
  return ranges;
}

void expect_equal(const std::vector<TimeRange>& one, const std::vector<TimeRange>& other) {
  ASSERT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    ASSERT_EQ(one[i].tsc, other[i].tsc) << i;
    ASSERT_EQ(one[i].error, other[i].error) << i;
    ASSERT_EQ(one[i].source, other[i].source) << i;
    ASSERT_EQ(one[i].known, other[i].known) << i;
  }
}

// Cuts at every PSB that is a multiple of `step`: how many parts followed those before without a second
// asking.
std::size_t cut(const Scene& scene, const trace::Clock& clock, std::size_t step, std::size_t& parts) {
  TimeTrack whole = scene.track(clock);
  TimeTrack first = scene.track(clock);
  TimeTrack now = scene.track(clock);
  std::size_t followed = 0;
  parts = 0;
  for (std::size_t i = 0; i < scene.psbs.size(); i += step) {
    TimeTrack part = first.ahead(scene.psbs[i].psb);
    std::vector<TimeRange> ranges;
    std::vector<TimeRange> expected;
    for (std::size_t k = i; k < i + step; ++k) {
      const auto append = [](std::vector<TimeRange>& all, const std::vector<TimeRange>& more) {
        all.insert(all.end(), more.begin(), more.end());
      };
      append(ranges, ask(part, scene.of(k)));
      append(expected, ask(whole, scene.of(k)));
    }
    ++parts;
    if (i > 0 && part.follows(now)) {
      ++followed;
      now = std::move(part);
    } else {
      ranges.clear();
      for (std::size_t k = i; k < i + step; ++k) {
        const auto again = ask(now, scene.of(k));
        ranges.insert(ranges.end(), again.begin(), again.end());
      }
    }
    expect_equal(ranges, expected);
    if (testing::Test::HasFatalFailure()) return followed;
  }
  return followed;
}

SyntheticConfig config_of(std::uint64_t seed) {
  SyntheticConfig config;
  config.seed = seed;
  config.branches = 50'000;
  config.mtc = seed % 5 != 0;
  config.cyc = seed % 3 != 0;
  config.first_branch = seed % 2 == 0;
  config.psb_bytes = 512U << seed % 3;
  return config;
}

TEST(TimeTrackAhead, EveryPartFollows) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    const Scene scene(synthesize(config_of(seed)));
    for (const std::size_t step : {1U, 2U, 7U}) {
      std::size_t parts = 0;
      const std::size_t followed = cut(scene, scene.trace.clock, step, parts);
      EXPECT_GE(followed + 1 + parts / 20, parts) << seed << " " << step;
      EXPECT_GT(parts, 2U);
      if (HasFailure()) FAIL() << seed;
    }
  }
}

TEST(TimeTrackAhead, EqualWhateverHappens) {
  for (std::uint64_t seed = 20; seed < 50; ++seed) {
    SyntheticConfig config = config_of(seed);
    config.halts = seed % 2 == 0 ? 1e-3 : 0;
    config.sleeps = seed % 3 == 0 ? 1e-3 : 0;
    config.sleep_ticks = seed % 4 == 0 ? 400'000 : 20'000;
    config.wake_tsc = seed % 5 < 3;
    config.overflows = seed % 4 == 1 ? 1e-3 : 0;
    config.mtc_loss = seed % 7 == 0 ? 0.1 : 0;
    config.ratio_lag = seed % 6 == 0 ? 300 : 0;
    Scene scene(synthesize(config));
    std::mt19937_64 random(seed);
    for (std::uint64_t at = 0; seed % 3 == 1 && at < scene.trace.bytes.size(); at += random() % 9000) {
      scene.trace.bytes[at] = static_cast<std::uint8_t>(random());
    }
    for (std::uint64_t at = 5000; seed % 4 == 2 && at < scene.trace.bytes.size(); at += 7000) {
      scene.losses.push_back({at, base::Status::RING_WRAPPED, 1});
    }
    std::size_t parts = 0;
    cut(scene, seed % 2 == 0 ? scene.trace.clock : trace::Clock{}, 1 + seed % 3, parts);
    if (HasFailure()) FAIL() << seed;
  }
}

// What lies before the part's turn is not asked of it without being noticed.
TEST(TimeTrackAhead, OlderQuestionsAreNotTrusted) {
  const Scene scene(synthesize(config_of(1)));
  TimeTrack now = scene.track(scene.trace.clock);
  const std::uint64_t psb = scene.psbs[5].psb;
  static_cast<void>(now.at(psb - 1, psb - 1));
  TimeTrack part = now.ahead(psb);
  static_cast<void>(part.at(psb - 1, psb + 100));
  EXPECT_FALSE(part.follows(now));
}

TEST(TimeTrackAhead, PartWithoutQuestionsTakesOver) {
  const Scene scene(synthesize(config_of(1)));
  TimeTrack whole = scene.track(scene.trace.clock);
  TimeTrack now = scene.track(scene.trace.clock);
  expect_equal(ask(now, scene.of(3)), ask(whole, scene.of(3)));
  TimeTrack empty = now.ahead(scene.psbs[4].psb);
  ASSERT_TRUE(empty.follows(now));
  TimeTrack part = now.ahead(scene.psbs[6].psb);
  const auto ranges = ask(part, scene.of(6));
  ASSERT_TRUE(part.follows(empty));
  expect_equal(ranges, ask(whole, scene.of(6)));
}

TEST(PsbTimes, AreThoseOfTheTrack) {
  const Scene scene(synthesize(config_of(2)));
  ASSERT_GT(scene.psbs.size(), 20U);
  TimeTrack track = scene.track(scene.trace.clock);
  for (const PsbTime& time : scene.psbs) {
    ASSERT_TRUE(time.known);
    EXPECT_EQ(track.at(time.psb, time.psb).tsc, time.tsc);
  }
  EXPECT_TRUE(psb_times({}, {}).empty());
}

TEST(PsbTimes, WithoutTsc) {
  std::vector<std::uint8_t> bytes;
  for (int i = 0; i < 8; ++i) bytes.insert(bytes.end(), {0x02, 0x82});
  bytes.insert(bytes.end(), {0x02, 0x23, 0x19, 1, 2, 3, 4, 5, 6, 7});
  const auto times = psb_times(bytes, {});
  ASSERT_EQ(times.size(), 1U);
  EXPECT_FALSE(times[0].known);
}

// Packets that are not asked for because of quiet_until() change nothing, and none of them reaches the time.
void expect_quiet(const SyntheticTrace& trace, std::uint64_t stride) {
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
    if (range.known) limit = (range.tsc / stride + 1) * stride;
    quiet = few.quiet_until(packet.offset, limit);
  }
  EXPECT_LT(asked, trace.packets.size() / 4);
}

TEST(TimeTrackQuiet, SkipsPacketsBeforeATime) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SyntheticConfig config = config_of(seed);
    if (seed % 4 == 0) config.overflows = 1e-3;
    const SyntheticTrace trace = synthesize(config);
    expect_quiet(trace, 100'000);
    if (HasFailure()) FAIL() << seed;
  }
}

}  // namespace
}  // namespace ptkit::time::test
