#include <gtest/gtest.h>

#include "capture/linux/session/trigger_counts.h"

namespace ptkit::capture {
namespace {

using Action = TriggerRequest::Action;

TriggerRequest trigger(Action action, std::uint64_t count) {
  TriggerRequest out;
  out.action = action;
  out.count = count;
  return out;
}

TEST(TriggerCounts, StopsAtTheCountAlone) {
  TriggerCounts counts({trigger(Action::STOP, 2)});
  EXPECT_FALSE(counts.waits_for_start());
  EXPECT_FALSE(counts.on_event(0, false));
  EXPECT_EQ(counts.on_event(0, false), Action::STOP);
  EXPECT_FALSE(counts.on_event(0, false));
}

TEST(TriggerCounts, CountsNothingWhilePaused) {
  TriggerCounts counts({trigger(Action::SNAPSHOT, 2)});
  EXPECT_FALSE(counts.on_event(0, true));
  EXPECT_FALSE(counts.on_event(0, false));
  EXPECT_FALSE(counts.on_event(0, true));
  EXPECT_EQ(counts.on_event(0, false), Action::SNAPSHOT);
  EXPECT_FALSE(counts.on_event(0, false));
  EXPECT_EQ(counts.on_event(0, false), Action::SNAPSHOT);
}

TEST(TriggerCounts, StartCountsWhilePausedAndFiresOnce) {
  TriggerCounts counts({trigger(Action::START, 2), trigger(Action::STOP, 1)});
  EXPECT_TRUE(counts.waits_for_start());
  EXPECT_FALSE(counts.on_event(1, true));
  EXPECT_FALSE(counts.on_event(0, true));
  EXPECT_EQ(counts.on_event(0, true), Action::START);
  EXPECT_FALSE(counts.waits_for_start());
  EXPECT_FALSE(counts.on_event(0, false));
  EXPECT_EQ(counts.on_event(1, false), Action::STOP);
}

}  // namespace
}  // namespace ptkit::capture
