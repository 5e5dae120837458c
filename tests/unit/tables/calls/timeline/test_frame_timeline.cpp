#include <gtest/gtest.h>

#include <set>

#include "unit/tables/calls/timeline/frame_stream.h"

namespace ptkit::tables::calls {
namespace {

TEST(FrameTimeline, NestsFramesOfAThread) {
  TimelineTest test;
  FrameStream& frames = *test.frames;
  frames.open(0);
  frames.open(10, kFunction + 1);
  frames.call(12, 14, kFunction + 2);
  frames.call(14, 20, kFunction + 2);
  frames.close(30);
  frames.call(30, 40, kFunction + 1);
  frames.close(100);
  const FrameTimeline& timeline = test.finish();
  ASSERT_EQ(timeline.tracks().size(), 1U);
  EXPECT_EQ(timeline.tracks()[0].owner.tid, 1);
  const Slices slices(timeline, 0);
  EXPECT_EQ(slices.text(), "0:0-100 1:10-30 2:12-14 2:14-20 1:30-40");
  const Slice& root = slices.shown[0].slice;
  EXPECT_EQ(root.id, 0U);
  EXPECT_EQ(root.covered, 100U);
  EXPECT_EQ(root.instructions, 100U);
  EXPECT_EQ(root.branches, 50U);
  EXPECT_EQ(root.how, CallKind::ROOT);
  EXPECT_NE(root.flags & FRAME_EXACT, 0);
  EXPECT_EQ(slices.shown[3].slice.id, 3U);
  EXPECT_EQ(slices.shown[3].slice.how, CallKind::CALL);
  EXPECT_EQ(test.all.at(slices.shown[3].slice.function).entry_ip, 0x1002U);
  const FrameTimeline::Facts facts = timeline.facts();
  EXPECT_TRUE(facts.is_whole);
  EXPECT_EQ(facts.slices, 5U);
  EXPECT_EQ(facts.calls, 5U);
  EXPECT_EQ(facts.merged_slices, 0U);
  EXPECT_EQ(facts.clamped, 0U);
}

TEST(FrameTimeline, JoinsStreamsOfAThread) {
  TimelineTest test;
  test.frames->call(0, 10, kFunction + 1);
  test.frames->call(5, 15, kFunction, 2);
  test.next_stream(4, 0x1001);  // its functions have other numbers
  test.frames->call(20, 30, kFunction);
  const FrameTimeline& timeline = test.finish();
  ASSERT_EQ(timeline.tracks().size(), 2U);
  const Slices slices(timeline, 0);
  EXPECT_EQ(slices.text(), "0:0-10 0:20-30");
  EXPECT_EQ(slices.shown[0].slice.function, slices.shown[1].slice.function);
  EXPECT_EQ(slices.shown[1].slice.id, 2U);
  EXPECT_EQ(timeline.tracks()[0].stream, 0U);
  EXPECT_EQ(timeline.tracks()[1].owner.tid, 2);
}

TEST(FrameTimeline, HasInstructionsOfEachStreamApart) {
  TimelineTest test(0, TimelineAxis::INSTRUCTIONS);
  test.frames->call(0, 10);
  test.next_stream();
  test.frames->call(0, 30);
  const FrameTimeline& timeline = test.finish();
  ASSERT_EQ(timeline.tracks().size(), 2U);
  EXPECT_EQ(Slices(timeline, 0).text(), "0:0-10");
  EXPECT_EQ(Slices(timeline, 1).text(), "0:0-30");
  EXPECT_EQ(timeline.tracks()[1].stream, 1U);
}

TEST(FrameTimeline, LeavesOutFramesOfUnknownTime) {
  TimelineTest test;
  FrameStream& frames = *test.frames;
  frames.open(0);
  frames.open(10);
  frames.call(11, 12);
  frames.top().flags &= static_cast<std::uint16_t>(~FRAME_TIME_KNOWN);
  frames.close(20);
  frames.top().flags &= static_cast<std::uint16_t>(~FRAME_END_TIME_KNOWN);
  frames.call(30, 31);
  frames.close(40);
  const FrameTimeline& timeline = test.finish();
  EXPECT_EQ(Slices(timeline, 0).text(), "0:11-12 0:30-31");
  EXPECT_EQ(timeline.facts().without_times, 2U);
}

TEST(FrameTimeline, HasThemByInstructions) {
  TimelineTest test(0, TimelineAxis::INSTRUCTIONS);
  test.frames->open(0);
  test.frames->call(1, 3);
  test.frames->top().flags &= static_cast<std::uint16_t>(~FRAME_TIME_KNOWN);
  test.frames->close(20);
  const FrameTimeline& timeline = test.finish();
  EXPECT_EQ(Slices(timeline, 0).text(), "0:0-20 1:1-3");
  EXPECT_EQ(timeline.facts().without_times, 0U);
}

TEST(FrameTimeline, PassesOnWhatHiddenFramesCall) {
  TimelineTest test;
  FrameStream& frames = *test.frames;
  frames.open(0);
  frames.call(1, 2);
  frames.open(5, kFunction + 1, 1, CallKind::PLT);
  frames.open(6, kFunction + 2, 1, CallKind::TAIL);
  frames.call(7, 8);
  frames.close(9);
  frames.call(9, 10);
  frames.close(20, 1, true);
  frames.close(40);
  const FrameTimeline& timeline = test.finish();
  const Slices slices(timeline, 0);
  EXPECT_EQ(slices.text(), "0:0-40 1:1-2 1:6-9 2:7-8 1:9-10");
  EXPECT_EQ(slices.shown[2].slice.how, CallKind::PLT);  // as the hidden one was called
  EXPECT_EQ(slices.shown[4].slice.how, CallKind::CALL);
}

TEST(FrameTimeline, PassesOnWhatUnselectedFramesCall) {
  tables::columns::Selection selection;
  selection.by_time = true;
  selection.tsc_begin = 50;
  selection.tsc_end = 60;
  TimelineTest test(0, TimelineAxis::TIME, selection);
  FrameStream& frames = *test.frames;
  frames.open(0);
  frames.call(10, 20);
  frames.open(50);
  frames.call(51, 52);
  frames.close(70);
  frames.top().is_outside = true;
  frames.close(80);
  const FrameTimeline& timeline = test.finish();
  EXPECT_EQ(Slices(timeline, 0).text(), "0:50-70 1:51-52");
}

TEST(FrameTimeline, PutsStacksThatTakeTurnsOnTracks) {
  TimelineTest test;
  FrameStream& frames = *test.frames;
  frames.open(0, kFunction, 1);
  // Stacks of the same thread, that are left and come back.
  frames.open(10, kFunction + 1, 2);
  frames.open(15, kFunction + 2, 3);
  frames.close(20, 3);
  frames.close(40, 2);
  frames.call(50, 60, kFunction + 3, 4);
  frames.close(100, 1);
  TimelineTest one;
  struct AsOneThread final : FrameSink {
    explicit AsOneThread(FrameSink& to) : to_(to) {}
    void on_frame(const Frame& frame, const Owner&) override { to_.on_frame(frame, thread_owner(7)); }
    void on_anomaly(const Anomaly&, const Owner&) override {}
    FrameSink& to_;
  } all(*one.sink);
  FrameStream stacks(all);
  stacks.open(0, kFunction, 1);
  stacks.open(10, kFunction + 1, 2);
  stacks.open(15, kFunction + 2, 3);
  stacks.close(20, 3);
  stacks.close(40, 2);
  stacks.call(50, 60, kFunction + 3, 4);
  stacks.close(100, 1);
  const FrameTimeline& timeline = one.finish();
  ASSERT_EQ(timeline.tracks().size(), 3U);
  EXPECT_EQ(Slices(timeline, 0).text(), "0:0-100");
  EXPECT_EQ(Slices(timeline, 1).text(), "0:10-40 0:50-60");
  EXPECT_EQ(Slices(timeline, 2).text(), "0:15-20");
  EXPECT_EQ(timeline.tracks()[1].stack, 1U);
  EXPECT_EQ(timeline.tracks()[2].stack, 2U);
}

TEST(FrameTimeline, ClampsPositionsWithinTheCaller) {
  TimelineTest test;
  FrameStream& frames = *test.frames;
  frames.open(10);
  frames.call(5, 20);
  frames.call(15, 30);
  frames.call(50, 70);
  frames.close(60);
  const FrameTimeline& timeline = test.finish();
  EXPECT_EQ(Slices(timeline, 0).text(), "0:10-60 1:10-20 1:20-30 1:50-60");
  EXPECT_EQ(timeline.facts().clamped, 3U);
}

TEST(FrameTimeline, KeepsTheOrderOfEqualTimes) {
  TimelineTest test;
  FrameStream& frames = *test.frames;
  frames.open(10);
  for (int i = 0; i < 3; ++i) frames.call(10, 10);
  frames.open(10);
  frames.call(10, 10);
  frames.close(10);
  frames.close(10);
  const FrameTimeline& timeline = test.finish();
  const Slices slices(timeline, 0);
  EXPECT_EQ(slices.text(), "0:10-10 1:10-10 1:10-10 1:10-10 1:10-10 2:10-10");
  for (std::size_t i = 0; i < slices.shown.size(); ++i) EXPECT_EQ(slices.shown[i].slice.id, i);
}

TEST(FrameTimeline, TakesRootsThatMayComeLaterAsOneStack) {
  TimelineTest test;
  test.frames->call(0, 10);
  test.next_stream();
  test.frames->open(8);
  test.frames->top().begin.tsc_error = 5;
  test.frames->close(20);
  const FrameTimeline& timeline = test.finish();
  ASSERT_EQ(timeline.tracks().size(), 1U);
  EXPECT_EQ(Slices(timeline, 0).text(), "0:0-10 0:10-20");
  EXPECT_EQ(timeline.facts().clamped, 1U);
}

TEST(FrameTimeline, MarksLosses) {
  TimelineTest test;
  test.frames->open(0);
  test.frames->open(5);
  test.frames->top().off_cpu.lost.most = 1;
  test.frames->close(10);
  test.frames->open(12);
  test.frames->top().end_how = CallEnd::GAP;
  test.frames->close(20);
  test.frames->close(30);
  const FrameTimeline& timeline = test.finish();
  const Slices slices(timeline, 0);
  ASSERT_EQ(slices.shown.size(), 3U);
  EXPECT_FALSE(slices.shown[0].slice.has_loss);
  EXPECT_TRUE(slices.shown[1].slice.has_loss);
  EXPECT_TRUE(slices.shown[2].slice.has_loss);
  EXPECT_EQ(slices.shown[2].slice.end_how, CallEnd::GAP);
}

TEST(FrameTimeline, ShowsDeepRecursion) {
  constexpr std::uint64_t kDepth = 1'000'000;
  TimelineTest test;
  for (std::uint64_t i = 0; i < kDepth; ++i) test.frames->open(i);
  for (std::uint64_t i = 0; i < kDepth; ++i) test.frames->close(kDepth + i);
  const FrameTimeline& timeline = test.finish();
  const Slices slices(timeline, 0);
  ASSERT_EQ(slices.shown.size(), kDepth);
  EXPECT_EQ(slices.shown.back().depth, kDepth - 1);
  EXPECT_EQ(slices.shown.back().slice.end, kDepth);
  EXPECT_LE(timeline.bytes(), kDepth * 82);
}

TEST(FrameTimeline, ShowsThousandsOfThreads) {
  constexpr std::int64_t kThreads = 5'000;
  TimelineTest test;
  for (std::int64_t tid = 1; tid <= kThreads; ++tid)
    test.frames->open(static_cast<std::uint64_t>(tid), kFunction, tid);
  for (std::int64_t tid = 1; tid <= kThreads; ++tid) {
    const auto at = static_cast<std::uint64_t>(kThreads + 2 * tid);
    test.frames->call(at, at + 1, kFunction + 1, tid);
    test.frames->close(at + 2, tid);
  }
  const FrameTimeline& timeline = test.finish();
  ASSERT_EQ(timeline.tracks().size(), static_cast<std::size_t>(kThreads));
  std::set<std::int64_t> tids;
  for (const Track& track : timeline.tracks()) tids.insert(track.owner.tid);
  EXPECT_EQ(tids.size(), timeline.tracks().size());
  EXPECT_EQ(Slices(timeline, 4'999).shown.size(), 2U);
  EXPECT_EQ(timeline.facts().slices, 10'000U);
}

TEST(FrameTimeline, CountsBranchesByPosition) {
  TimelineTest test;
  FrameStream& frames = *test.frames;
  frames.open(0);
  for (std::uint64_t i = 1; i < 100'000; ++i) frames.call(i * 10, i * 10 + 8);
  frames.close(2'000'000);
  const FrameTimeline& timeline = test.finish();
  const std::vector<BranchCount>& counts = timeline.tracks()[0].counts;
  EXPECT_LE(counts.size(), BranchPoints::kMost);
  EXPECT_GE(counts.size(), BranchPoints::kMost / 4);
  for (const BranchCount& count : counts) EXPECT_EQ(count.branches, count.position / 2);
  EXPECT_EQ(counts.back().position, 2'000'000U);
}

TEST(FrameTimeline, AddsUpBranchesOfStreams) {
  TimelineTest test;
  test.frames->call(0, 1000);
  test.next_stream();
  test.frames->call(2000, 2100);
  const FrameTimeline& timeline = test.finish();
  const std::vector<BranchCount>& counts = timeline.tracks()[0].counts;
  ASSERT_FALSE(counts.empty());
  EXPECT_EQ(counts.back().position, 2100U);
  EXPECT_EQ(counts.back().branches, 500U + 1050U);
}

}  // namespace
}  // namespace ptkit::tables::calls
