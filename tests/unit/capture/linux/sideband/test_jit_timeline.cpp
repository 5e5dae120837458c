// Names of JIT code by time: addresses are used again.
#include <gtest/gtest.h>

#include "capture/linux/sideband/jit_timeline.h"

namespace ptkit::capture {
namespace {

constexpr std::uint64_t kCode = 0x7000'0000;
constexpr std::uint64_t kNever = trace::kTscMax;

struct Held {
  std::uint64_t address, size, from, to;
  bool operator==(const Held&) const = default;
};

std::vector<Held> held(const JitTimeline& timeline) {
  std::vector<Held> out;
  for (const trace::NameRange& one : timeline.ranges(1)) {
    EXPECT_TRUE(one.is_module);
    EXPECT_EQ(one.space, 1u);
    out.push_back({one.address, one.size, one.tsc_from, one.tsc_to});
  }
  return out;
}

TEST(JitTimeline, NamesOfTheirOwnAddressesHoldAlways) {
  JitTimeline timeline({{kCode, 500, true}});
  EXPECT_EQ(timeline.add({kCode, 16, "f", 0, 100}), kCode);
  EXPECT_EQ(timeline.add({kCode + 16, 16, "g", 0, 200}), kCode + 16);
  EXPECT_EQ(held(timeline), (std::vector<Held>{{kCode, 16, 0, kNever}, {kCode + 16, 16, 0, kNever}}));
}

TEST(JitTimeline, ReplacesANameWhenItsCodeIsFirstExecuted) {
  // The first function goes on to be executed after the second one's line may have been written.
  JitTimeline timeline(
      {{kCode, 110, false}, {kCode + 4, 210, false}, {kCode, 250, true}, {kCode, 300, true}});
  ASSERT_TRUE(timeline.add({kCode, 16, "first", 0, 100}));
  const auto offset = timeline.add({kCode, 8, "second", 0, 200});
  ASSERT_TRUE(offset);
  EXPECT_NE(*offset, kCode);  // two functions at one address differ in their file
  EXPECT_EQ(held(timeline), (std::vector<Held>{{kCode, 16, 0, 250}, {kCode, 8, 250, kNever}}));
}

TEST(JitTimeline, TakesTheFirstExecutionWhereNoBytesChange) {
  JitTimeline timeline({{kCode, 110, false}, {kCode, 230, false}});
  ASSERT_TRUE(timeline.add({kCode, 16, "first", 0, 100}));
  ASSERT_TRUE(timeline.add({kCode, 16, "second", 0, 200}));
  EXPECT_EQ(held(timeline), (std::vector<Held>{{kCode, 16, 0, 230}, {kCode, 16, 230, kNever}}));
}

TEST(JitTimeline, WithoutExecutionsANameHoldsSinceItMayHaveBeenWritten) {
  JitTimeline timeline;
  ASSERT_TRUE(timeline.add({kCode, 16, "first", 0, 100}));
  ASSERT_TRUE(timeline.add({kCode + 8, 16, "second", 0, 200}));
  ASSERT_TRUE(timeline.add({kCode, 16, "third", 0, 300}));
  EXPECT_EQ(held(timeline),
            (std::vector<Held>{{kCode, 16, 0, 201}, {kCode + 8, 16, 201, 301}, {kCode, 16, 301, kNever}}));
}

TEST(JitTimeline, OrderCountsWhereTimesAreNotKnown) {
  JitTimeline timeline;
  for (const char* const name : {"a", "b", "c"}) ASSERT_TRUE(timeline.add({kCode, 16, name, 0, 0}));
  EXPECT_EQ(held(timeline),
            (std::vector<Held>{{kCode, 16, 0, 1}, {kCode, 16, 1, 2}, {kCode, 16, 2, kNever}}));
}

TEST(JitTimeline, ANameThatIsThereAlreadyStays) {
  JitTimeline timeline;
  ASSERT_TRUE(timeline.add({kCode, 16, "f", 0, 100}));
  EXPECT_FALSE(timeline.add({kCode, 16, "f", 1, 200}));
  EXPECT_EQ(held(timeline).size(), 1u);
}

TEST(JitTimeline, LeavesOutWhatIsNoUserCode) {
  JitTimeline timeline;
  EXPECT_FALSE(timeline.add({kCode, 0, "empty", 0, 0}));
  EXPECT_FALSE(timeline.add({~std::uint64_t{0} - 3, 16, "wraps", 0, 0}));
  EXPECT_FALSE(timeline.add({std::uint64_t{1} << 47U, 16, "kernel", 0, 0}));
  EXPECT_FALSE(timeline.add({16, ~std::uint64_t{0}, "all", 0, 0}));
  EXPECT_TRUE(held(timeline).empty());
}

TEST(JitTimeline, AChildHasTheNamesOfTheTimeOfItsFork) {
  JitTimeline parent;
  ASSERT_TRUE(parent.add({kCode, 16, "old", 0, 0}));
  ASSERT_TRUE(parent.add({kCode, 16, "new", 0, 200}));
  ASSERT_TRUE(parent.add({kCode + 16, 16, "later", 0, 300}));
  JitTimeline child = parent.forked(250, {});
  EXPECT_EQ(held(child), (std::vector<Held>{{kCode, 16, 0, kNever}}));
  EXPECT_FALSE(child.add({kCode, 16, "new", 1, 400}));  // a copy of the parent's file
  ASSERT_TRUE(child.add({kCode, 16, "own", 1, 500}));
  EXPECT_EQ(held(child), (std::vector<Held>{{kCode, 16, 0, 501}, {kCode, 16, 501, kNever}}));
}

}  // namespace
}  // namespace ptkit::capture
