// Timelines as JSON: Chrome's trace events and speedscope's profiles.
#include <gtest/gtest.h>

#include "unit/tables/calls/timeline_files/made_timeline.h"

namespace ptkit::tables::calls {
namespace {

// A call with a call in it, and calls that are merged.
MadeTimeline small_timeline() {
  MadeTimeline timeline;
  timeline.add_track(5, 6).bands = {{1000, 1000, Band::Kind::LOST}};
  timeline.add(0, 0, 0, 2000);
  Slice& inner = timeline.add(1, 1, 500, 1500);
  inner.flags = 0;
  inner.how = CallKind::TAIL;
  inner.end_how = CallEnd::GAP;
  inner.begin_error = 3;
  inner.end_error = 4;
  inner.has_loss = true;
  Slice& merged = timeline.add(1, 0, 1600, 1800);
  merged.calls = 12;
  merged.covered = 50;
  return timeline;
}

TEST(Chrome, WritesBeginsAndEnds) {
  const MadeTimeline timeline = small_timeline();
  TimelineFacts facts = made_facts(timeline, 2);
  facts.functions[0].shown = facts.functions[0].full = "a\"\\\n\x01";
  EXPECT_EQ(written(write_chrome, timeline, facts),
            R"x({"displayTimeUnit":"ns","otherData":{"writer":"ptkit","axis":"instructions"},"traceEvents":[
{"ph":"M","pid":5,"tid":5,"ts":0,"name":"process_name","args":{"name":"program"}},
{"ph":"M","pid":5,"tid":6,"ts":0,"name":"thread_name","args":{"name":"thread 6"}},
{"ph":"B","pid":5,"tid":6,"ts":0,"name":"a\"\\\n\u0001","args":{"instructions":2000,"branches":500,"exact":true,"file":"code.so"}},
{"ph":"B","pid":5,"tid":6,"ts":0.500,"name":"f1","args":{"instructions":1000,"branches":250,"exact":false,"how":"TAIL","end_how":"GAP","begin_error_ns":3,"end_error_ns":4,"loss":true,"full_name":"f1(int)","file":"code.so"}},
{"ph":"E","pid":5,"tid":6,"ts":1.500,"name":"f1"},
{"ph":"B","pid":5,"tid":6,"ts":1.600,"name":"merged: a\"\\\n\u0001","args":{"instructions":200,"branches":50,"exact":true,"calls":12,"covered":0.25,"file":"code.so"}},
{"ph":"E","pid":5,"tid":6,"ts":1.800,"name":"merged: a\"\\\n\u0001"},
{"ph":"E","pid":5,"tid":6,"ts":2,"name":"a\"\\\n\u0001"},
{"ph":"M","pid":5,"tid":2147418111,"ts":0,"name":"thread_name","args":{"name":"thread 6: lost"}},
{"ph":"B","pid":5,"tid":2147418111,"ts":1,"cat":"band","name":"lost"},
{"ph":"E","pid":5,"tid":2147418111,"ts":1,"cat":"band","name":"lost"}
]}
)x");
}

TEST(Chrome, WritesRatesOfBranches) {
  MadeTimeline timeline;
  timeline.add_track(5, 6).counts = {{0, 0}, {4000, 1000}};
  const std::string text = written(write_chrome, timeline, made_facts(timeline, 0));
  EXPECT_NE(text.find(R"({"ph":"C","pid":5,"tid":6,"ts":0,"name":"branches per 1000 instructions, thread 6",)"
                      R"("args":{"rate":250}})"),
            std::string::npos);
}

TEST(Speedscope, WritesFramesAfterEvents) {
  const MadeTimeline timeline = small_timeline();
  EXPECT_EQ(written(write_speedscope, timeline, made_facts(timeline, 2)),
            R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"ptkit",)"
            R"("name":"axis: instructions","activeProfileIndex":0,"profiles":[
{"type":"evented","unit":"none","name":"program, thread 6","events":[
{"type":"O","frame":0,"at":0},
{"type":"O","frame":1,"at":500},
{"type":"C","frame":1,"at":1500},
{"type":"O","frame":2,"at":1600},
{"type":"C","frame":2,"at":1800},
{"type":"C","frame":0,"at":2000}
],"startValue":0,"endValue":2000},
{"type":"evented","unit":"none","name":"program, thread 6: lost","events":[
{"type":"O","frame":3,"at":1000},
{"type":"C","frame":3,"at":1000}
],"startValue":1000,"endValue":1000}
],
"shared":{"frames":[
{"name":"f0","file":"code.so"},
{"name":"f1","file":"code.so"},
{"name":"12 calls merged: f0","file":"code.so"},
{"name":"lost"}
]}}
)");
}

TEST(Speedscope, HasTimesInNanoseconds) {
  MadeTimeline timeline(TimelineAxis::TIME);
  timeline.add_track(5, 6);
  timeline.add(0, 0, 1000, 3000);
  TimelineFacts facts = made_facts(timeline, 1);
  trace::Clock clock;
  clock.tsc_hz = 2'000'000'000;
  facts.positions = Positions(clock, 1000);
  const std::string text = written(write_speedscope, timeline, facts);
  EXPECT_NE(text.find(R"("unit":"nanoseconds")"), std::string::npos);
  EXPECT_NE(text.find(R"({"type":"C","frame":0,"at":1000})"), std::string::npos);
}

TEST(TimelineFiles, StopWithTheSink) {
  MadeTimeline timeline;
  timeline.add_track(1, 2);
  for (std::uint64_t i = 0; i < 100'000; ++i) timeline.add(0, 0, i * 10, i * 10 + 5);
  timeline.add_track(1, 3);
  const TimelineFacts facts = made_facts(timeline, 1);
  for (const WriteTimeline write : {write_chrome, write_speedscope, write_fxt, write_perfetto}) {
    std::size_t chunks = 0;
    ByteSink sink([&](std::string_view) { return ++chunks < 2; });
    EXPECT_FALSE(write(timeline, facts, sink));
    EXPECT_EQ(chunks, 2U);
  }
}

TEST(TimelineFiles, MayHaveNoTracks) {
  const MadeTimeline timeline;
  for (const WriteTimeline write : {write_chrome, write_speedscope, write_fxt, write_perfetto})
    EXPECT_FALSE(written(write, timeline, made_facts(timeline, 0)).empty());
  EXPECT_NE(written(write_chrome, timeline, {}).find("\"traceEvents\":[\n]}"), std::string::npos);
}

}  // namespace
}  // namespace ptkit::tables::calls
