#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "unit/tables/calls/timeline/frame_stream.h"

namespace ptkit::tables::calls {
namespace {

// Calls of a function, from one caller.
void add_calls(FrameStream& frames, std::uint64_t first, std::uint64_t count, std::uint64_t step,
               std::uint64_t length, std::uint32_t function = kFunction + 1) {
  for (std::uint64_t i = 0; i < count; ++i)
    frames.call(first + i * step, first + i * step + length, function);
}

void expect_fills(const FrameTimeline& timeline, std::size_t most) {
  EXPECT_EQ(timeline.facts().slices, most);
}

TEST(Reduction, MergesShortCallsOfOneCaller) {
  TimelineTest test(2);
  test.frames->open(0);
  add_calls(*test.frames, 10, 4, 10, 4);
  test.frames->top().begin.tsc_error = 0;
  test.frames->close(1000);
  const FrameTimeline& timeline = test.finish();
  const Slices slices(timeline, 0);
  EXPECT_EQ(slices.text(), "0:0-1000 1:10-44*4");
  const Slice& merged = slices.shown[1].slice;
  EXPECT_EQ(merged.id, 1U);
  EXPECT_EQ(merged.covered, 16U);
  EXPECT_EQ(merged.instructions, 16U);
  EXPECT_EQ(merged.branches, 8U);
  EXPECT_NE(merged.flags & FRAME_EXACT, 0);
  const FrameTimeline::Facts facts = timeline.facts();
  EXPECT_FALSE(facts.is_whole);
  EXPECT_EQ(facts.merged_slices, 1U);
  EXPECT_EQ(facts.merged_calls, 4U);
  EXPECT_EQ(facts.longest_merged, 34U);
}

TEST(Reduction, NamesMergedCallsByTheLongest) {
  TimelineTest test(2);
  test.frames->open(0);
  test.frames->call(10, 12, kFunction + 1);
  test.frames->call(20, 29, kFunction + 2);
  test.frames->open(30, kFunction + 3);
  test.frames->top().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
  test.frames->close(33);
  test.frames->close(1000);
  const FrameTimeline& timeline = test.finish();
  const Slices slices(timeline, 0);
  ASSERT_EQ(slices.text(), "0:0-1000 1:10-33*3");
  const Slice& merged = slices.shown[1].slice;
  EXPECT_EQ(merged.id, 2U);
  EXPECT_EQ(test.all.at(merged.function).entry_ip, 0x1002U);
  EXPECT_EQ(merged.covered, 14U);
  EXPECT_EQ(merged.flags & FRAME_EXACT, 0);
  EXPECT_NE(merged.flags & FRAME_BEGIN_SEEN, 0);
}

// Children of what merges become one list, and merge there.
TEST(Reduction, MergesChildrenOfMergedCalls) {
  TimelineTest test(3);
  test.frames->open(0);
  for (std::uint64_t i = 0; i < 10; ++i) {
    test.frames->open(100 + i * 10);
    test.frames->call(101 + i * 10, 104 + i * 10);
    test.frames->call(105 + i * 10, 107 + i * 10);
    test.frames->close(108 + i * 10);
  }
  test.frames->close(1000);
  const FrameTimeline& timeline = test.finish();
  EXPECT_EQ(Slices(timeline, 0).text(), "0:0-1000 1:100-198*10 2:101-197*20");
}

TEST(Reduction, KeepsTheSlowestCallsWhole) {
  constexpr std::size_t kMost = 4'000;
  TimelineTest test(kMost);
  std::map<std::uint32_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>> lengths;  // and ids
  test.frames->open(0);
  std::mt19937_64 random(7);
  std::uint64_t at = 10;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint32_t function = kFunction + 1 + static_cast<std::uint32_t>(random() % 10);
    const std::uint64_t length = 1 + random() % (10 * (function - kFunction));
    const std::uint64_t id = test.frames->open(at, function);
    test.frames->close(at += length);
    lengths[function].emplace_back(length, id);
    at += random() % 20;
  }
  test.frames->close(at);
  const FrameTimeline& timeline = test.finish();
  expect_fills(timeline, kMost);
  const Slices slices(timeline, 0);
  std::set<std::uint64_t> whole;
  std::uint64_t calls = 0;
  for (const Shown& one : slices.shown) {
    calls += one.slice.calls;
    if (!one.slice.is_merged()) whole.insert(one.slice.id);
  }
  EXPECT_EQ(calls, 100'001U);
  ASSERT_EQ(timeline.facts().slowest, 100U);
  for (auto& [function, all] : lengths) {
    std::ranges::sort(all, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    for (std::size_t i = 0; i < 100; ++i) EXPECT_TRUE(whole.contains(all[i].second)) << function << " " << i;
  }
}

// Of 100 slices, half are for the slowest calls: the root, and 24 of each of two functions.
TEST(Reduction, KeepsAsManyWholeAsHalfOfTheSlices) {
  TimelineTest test;
  test.frames->open(0);
  std::uint64_t at = 1;
  for (std::uint64_t i = 0; i < 200; ++i) {
    test.frames->call(at, at + 500 + i, kFunction + 1);
    test.frames->call(at + 1'000, at + 1'100 + i, kFunction + 2);
    at += 2'000;
  }
  test.frames->close(at);
  FrameTimeline& timeline = test.finish();
  timeline.reduce(100);
  expect_fills(timeline, 100);
  EXPECT_EQ(timeline.facts().slowest, 24U);
}

// Each call that stays whole takes four slices, as what it calls cannot merge with others. The root and all
// other calls take five.
TEST(Reduction, KeepsAsManyWholeAsLeaveEnoughForOthers) {
  TimelineTest test;
  test.frames->open(0, kFunction + 1);
  for (std::uint64_t i = 0; i < 60; ++i) {
    const std::uint64_t at = 10 + i * 1'000;
    test.frames->open(at);
    for (std::uint64_t level = 1; level <= 3; ++level) test.frames->open(at + level);
    for (std::uint64_t level = 3; level > 0; --level) test.frames->close(at + 300 - level);
    test.frames->close(at + 990 - i * 10);
  }
  test.frames->close(100'000, 1);
  FrameTimeline& timeline = test.finish();
  timeline.reduce(100);
  expect_fills(timeline, 100);
  EXPECT_EQ(timeline.facts().slowest, 23U);
  EXPECT_EQ(timeline.facts().too_deep, 0U);
}

// Slices in each tenth of a timeline on which all positions have calls alike.
TEST(Reduction, HasDetailEverywhere) {
  for (const bool is_reduced_at_once : {false, true}) {
    for (const std::size_t most : {3'000U, 8'000U, 30'000U, 100'000U}) {
      TimelineTest test(is_reduced_at_once ? most : 0);
      std::mt19937_64 random(11);
      std::uint64_t at = 1;
      test.frames->open(0, kFunction + 3);
      for (int i = 0; i < 60'000; ++i) {
        test.frames->open(at += random() % 20'000, kFunction);
        for (std::uint64_t k = random() % 4; k > 0; --k) {
          test.frames->open(at += random() % 6'000, kFunction + 1);
          test.frames->close(at += random() % 40'000);
        }
        test.frames->close(at += random() % 20'000);
      }
      test.frames->close(at);
      FrameTimeline& timeline = test.finish();
      timeline.reduce(most);
      expect_fills(timeline, most);
      std::vector<std::size_t> tenths(10);
      const Slices slices(timeline, 0);
      for (const Shown& one : slices.shown) ++tenths[std::min<std::uint64_t>(one.slice.begin * 10 / at, 9)];
      for (const std::size_t tenth : tenths)
        EXPECT_NEAR(static_cast<double>(tenth), static_cast<double>(most) * 0.1,
                    static_cast<double>(most) * 0.015)
            << most << is_reduced_at_once;
    }
  }
}

TEST(Reduction, NestsIfItIsStopped) {
  TimelineTest test;
  std::uint64_t at = 1;
  test.frames->open(0);
  for (int i = 0; i < 50'000; ++i) {
    test.frames->open(at);
    test.frames->call(at + 1, at + 2, kFunction + 1);
    test.frames->close(at += 5);
  }
  test.frames->close(at);
  FrameTimeline& timeline = test.finish();
  const std::uint64_t calls = timeline.facts().calls;
  std::uint64_t slices = calls;
  std::set<std::uint64_t> stopped_at;
  // Before anything merges; later, while slices merge.
  for (int steps = 1; !timeline.reduce(1'000, [left = steps]() mutable { return --left > 0; }); steps += 3) {
    const FrameTimeline::Facts facts = timeline.facts();
    EXPECT_EQ(facts.is_whole, facts.slices == calls);
    EXPECT_LE(facts.slices, slices);
    EXPECT_EQ(facts.calls, calls);
    slices = facts.slices;
    EXPECT_EQ(Slices(timeline, 0).shown.size(), slices);
    stopped_at.insert(slices);
  }
  EXPECT_TRUE(stopped_at.contains(calls));
  EXPECT_GE(stopped_at.size(), 2U);
  expect_fills(timeline, 1'000);
  EXPECT_EQ(timeline.facts().calls, calls);
}

TEST(Reduction, FillsWhatIsAskedForIfAllCallsAreAlike) {
  for (const std::size_t most : {100U, 1'000U, 3'000U, 5'500U, 9'000U, 9'900U}) {
    TimelineTest test(most);
    test.frames->open(0);
    add_calls(*test.frames, 10, 10'000, 10, 5);
    test.frames->close(1'000'000);
    expect_fills(test.finish(), most);
  }
}

TEST(Reduction, FillsItFromAWholeTimeline) {
  TimelineTest test;
  std::mt19937_64 random(3);
  std::uint64_t at = 0;
  test.frames->open(0);
  for (int i = 0; i < 50'000; ++i) {
    test.frames->open(at += 1 + random() % 9, kFunction + static_cast<std::uint32_t>(random() % 40));
    for (std::uint64_t k = random() % 3; k > 0; --k) {
      test.frames->open(at += random() % 4, kFunction + 50);
      test.frames->close(at += random() % 100);
    }
    test.frames->close(at += random() % 1000);
  }
  test.frames->close(at + 10);
  FrameTimeline& timeline = test.finish();
  const FrameTimeline::Facts whole = timeline.facts();
  EXPECT_EQ(whole.slices, test.timeline.slices(0, 1));
  for (const std::size_t most : {60'000U, 30'000U, 29'000U, 5'000U, 500U, 60U}) {
    timeline.reduce(most);
    expect_fills(timeline, most);
    const Slices slices(timeline, 0);
    std::uint64_t calls = 0;
    for (const Shown& one : slices.shown) calls += one.slice.calls;
    EXPECT_EQ(calls, whole.calls);
    EXPECT_EQ(timeline.facts().merged_calls + timeline.facts().slices - timeline.facts().merged_slices,
              whole.calls);
  }
}

TEST(Reduction, KeepsMemoryBounded) {
  constexpr std::size_t kMost = 2'000;
  TimelineTest test(kMost);
  test.frames->open(0);
  std::mt19937_64 random(5);
  std::uint64_t at = 1;
  std::uint64_t most_bytes = 0;
  for (int i = 0; i < 500'000; ++i) {
    test.frames->open(at += random() % 5, kFunction + 1);
    test.frames->call(at, at + 1, kFunction + 2);
    test.frames->close(at += 1 + random() % 50);
    most_bytes = std::max(most_bytes, test.sink->bytes());
  }
  test.frames->close(at);
  EXPECT_LE(most_bytes, 2 * kMost * sizeof(SliceNode) + 1'000'000);
  FrameTimeline& timeline = test.finish();
  expect_fills(timeline, kMost);
  EXPECT_EQ(timeline.facts().calls, 1'000'001U);
}

TEST(Reduction, JoinsManyStreams) {
  constexpr std::size_t kMost = 1'000;
  TimelineTest test(kMost);
  std::uint64_t frames = 0;
  std::uint64_t most_bytes = 0;
  for (std::uint64_t stream = 0; stream < 40; ++stream) {
    if (stream != 0) test.next_stream(8, 0x1000 + stream);
    for (std::uint64_t i = 0; i < 5'000; ++i)
      test.frames->call(stream * 100'000 + i * 10, stream * 100'000 + i * 10 + 1 + i % 9,
                        kFunction + static_cast<std::uint32_t>(i % 7),
                        1 + static_cast<std::int64_t>(stream % 3));
    frames += test.frames->frames();
    most_bytes = std::max(most_bytes, test.timeline.bytes());
  }
  FrameTimeline& timeline = test.finish();
  EXPECT_EQ(timeline.tracks().size(), 3U);
  EXPECT_EQ(timeline.facts().calls, frames);
  expect_fills(timeline, kMost);
  EXPECT_LE(most_bytes, 6 * kMost * sizeof(SliceNode) + 3'000'000);
}

TEST(Reduction, LeavesOutWhatIsTooDeep) {
  constexpr std::uint64_t kDepth = 200'000;
  constexpr std::size_t kMost = 10'000;
  TimelineTest test(kMost);
  for (int times = 0; times < 2; ++times) {
    const std::uint64_t first = static_cast<std::uint64_t>(times) * 10 * kDepth;
    for (std::uint64_t i = 0; i < kDepth; ++i) test.frames->open(first + i);
    for (std::uint64_t i = 0; i < kDepth; ++i) test.frames->close(first + kDepth + i);
  }
  FrameTimeline& timeline = test.finish();
  const FrameTimeline::Facts facts = timeline.facts();
  expect_fills(timeline, kMost);
  EXPECT_EQ(facts.calls + facts.too_deep, 2 * kDepth);
  EXPECT_LE(facts.deepest, kMost);
  EXPECT_GT(facts.slowest, 0U);
  const Slices slices(timeline, 0);
  EXPECT_EQ(slices.shown[0].slice.begin, 0U);
  EXPECT_EQ(slices.shown[0].slice.end, 2 * kDepth - 1);
}

TEST(Reduction, LeavesATrackOfEachThread) {
  TimelineTest test(10);
  for (std::int64_t tid = 1; tid <= 100; ++tid) {
    for (std::uint64_t i = 0; i < 50; ++i) test.frames->call(i * 10, i * 10 + 5, kFunction, tid);
  }
  const FrameTimeline& timeline = test.finish();
  EXPECT_EQ(timeline.facts().slices, 100U);
  EXPECT_EQ(timeline.facts().calls, 5'000U);
}

// Each of 2,000 threads has a root, calls, and what they call: three slices are the least of each.
class FewSlices : public ::testing::TestWithParam<bool> {};

TEST_P(FewSlices, AreMergedBeforeCallsAreLeftOut) {
  constexpr std::int64_t kThreads = 2'000;
  for (const std::size_t most : {6'600U, 6'000U, 5'000U, 2'000U, 100U}) {
    TimelineTest test(GetParam() ? most : 0);
    for (std::int64_t tid = 1; tid <= kThreads; ++tid) {
      test.frames->open(0, kFunction, tid);
      for (std::uint64_t i = 0; i < 6; ++i) {
        test.frames->open(10 + i * 10, kFunction + 1, tid);
        test.frames->call(12 + i * 10, 15 + i * 10, kFunction + 2, tid);
        test.frames->close(18 + i * 10, tid);
      }
      test.frames->close(200, tid);
    }
    FrameTimeline& timeline = test.finish();
    timeline.reduce(most);
    const FrameTimeline::Facts facts = timeline.facts();
    EXPECT_EQ(facts.slices, std::max<std::size_t>(most, kThreads));
    EXPECT_EQ(facts.calls + facts.too_deep, test.frames_of_all());
    if (most >= 3 * kThreads) {
      EXPECT_EQ(facts.too_deep, 0U);
    } else {
      EXPECT_EQ(facts.deepest, most > 2 * kThreads ? 1U : 0U);
      // A slice that is left out has six calls; those that stay whole take the space of others.
      const std::uint64_t least = 6 * (3 * kThreads - std::max<std::uint64_t>(most, kThreads));
      EXPECT_GE(facts.too_deep + 400, least);
      EXPECT_LE(facts.too_deep, least + 1'200);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(WhileRead, FewSlices, ::testing::Bool());

// A tree of calls as a test knows it.
struct Known {
  std::uint64_t parent = UINT64_MAX;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t function = 0;
};

class RandomTrees : public ::testing::TestWithParam<unsigned> {};

TEST_P(RandomTrees, AreWholeOrAddUp) {
  std::mt19937_64 random(GetParam());
  const std::uint64_t threads = 1 + random() % 4;
  const std::uint64_t events = 2'000 + random() % 6'000;
  const std::size_t most = 20 + random() % 2'000;
  TimelineTest whole;
  TimelineTest reduced(most);
  std::map<std::uint64_t, Known> known;
  std::map<std::int64_t, std::vector<std::uint64_t>> open;
  std::uint64_t at = 0;
  const auto close = [&](std::int64_t tid) {
    whole.frames->close(at, tid);
    reduced.frames->close(at, tid);
    known[open[tid].back()].end = at;
    open[tid].pop_back();
  };
  for (std::uint64_t i = 0; i < events; ++i) {
    const auto tid = static_cast<std::int64_t>(1 + random() % threads);
    at += random() % 3 == 0 ? random() % 500 : random() % 4;
    if (!open[tid].empty() && random() % 100 < 48) {
      close(tid);
      continue;
    }
    const std::uint32_t function = kFunction + static_cast<std::uint32_t>(random() % 20);
    const std::uint64_t id = whole.frames->open(at, function, tid);
    ASSERT_EQ(reduced.frames->open(at, function, tid), id);
    known[id] = {open[tid].empty() ? UINT64_MAX : open[tid].back(), at, 0, function};
    open[tid].push_back(id);
  }
  for (std::uint64_t tid = 1; tid <= threads; ++tid) {
    while (!open[static_cast<std::int64_t>(tid)].empty()) close(static_cast<std::int64_t>(tid));
  }
  const FrameTimeline& all = whole.finish();
  std::set<std::uint64_t> seen;
  for (std::size_t track = 0; track < all.tracks().size(); ++track) {
    std::vector<std::uint64_t> path;
    for (const Shown& one : Slices(all, track).shown) {
      path.resize(one.depth);
      const Known& call = known.at(one.slice.id);
      EXPECT_EQ(call.begin, one.slice.begin);
      EXPECT_EQ(call.end, one.slice.end);
      EXPECT_EQ(call.parent, path.empty() ? UINT64_MAX : path.back());
      EXPECT_EQ(one.slice.covered, call.end - call.begin);
      EXPECT_TRUE(seen.insert(one.slice.id).second);
      path.push_back(one.slice.id);
    }
  }
  EXPECT_EQ(seen.size(), known.size());
  const FrameTimeline& few = reduced.finish();
  const FrameTimeline::Facts facts = few.facts();
  EXPECT_EQ(facts.calls + facts.too_deep, known.size());
  EXPECT_EQ(facts.clamped, 0U);
  EXPECT_LE(facts.slices, std::max(most, few.tracks().size()));
  EXPECT_GE(facts.slices, known.size() > most && facts.too_deep == 0 ? most - most / 10 : 0);
  std::uint64_t covered = 0;
  for (std::size_t track = 0; track < few.tracks().size(); ++track) {
    std::uint64_t last_end = 0;
    for (const Shown& one : Slices(few, track).shown) {
      covered += one.slice.covered;
      EXPECT_LE(one.slice.covered, one.slice.end - one.slice.begin);
      if (one.slice.is_merged()) {
        EXPECT_LE(one.slice.end - one.slice.begin, facts.longest_merged);
      } else {
        EXPECT_EQ(known.at(one.slice.id).begin, one.slice.begin);
        EXPECT_EQ(known.at(one.slice.id).end, one.slice.end);
      }
      if (one.depth == 0) {
        EXPECT_GE(one.slice.begin, last_end);
        last_end = one.slice.end;
      }
    }
  }
  std::uint64_t expected = 0;
  for (const auto& [id, call] : known) expected += call.end - call.begin;
  EXPECT_EQ(covered, facts.too_deep == 0 ? expected : covered);
  EXPECT_LE(covered, expected);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTrees, ::testing::Range(0U, 40U));

}  // namespace
}  // namespace ptkit::tables::calls
