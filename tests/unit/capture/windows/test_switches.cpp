#include <gtest/gtest.h>

#include <vector>

#include "capture/windows/switches.h"
#include "unit/capture/windows/fake_events.h"

namespace ptkit::capture {
namespace {

using namespace test;

constexpr std::int64_t kPid = 4711;

WindowsSwitches of_process(std::int64_t pid, bool kernel = false) {
  return {{0, 1}, pid, kernel, [](std::int64_t of) { return static_cast<trace::SpaceId>(of); }};
}

// TSC, process and thread of each switch.
using Rows = std::vector<std::vector<std::int64_t>>;

Rows rows(const std::vector<trace::Switch>& switches) {
  Rows out;
  for (const trace::Switch& one : switches)
    out.push_back({static_cast<std::int64_t>(one.tsc), one.pid, one.tid});
  return out;
}

TEST(WindowsSwitches, FollowsThreadsFromCpuToCpu) {
  WindowsSwitches switches = of_process(0);
  switches.add_thread(kPid, 17, 1);
  switches.add_thread(99, 98, 1);
  switches.add_switch(switch_event(0, 100, 98, 17));
  switches.add_switch(switch_event(0, 200, 17, 0));
  switches.add_switch(switch_event(1, 210, 0, 17));
  EXPECT_EQ(rows(switches.take(0, false)), (Rows{{0, 99, 98}, {100, kPid, 17}, {200, 0, 0}}));
  const auto second = switches.take(1, false);
  EXPECT_EQ(rows(second), (Rows{{0, 0, 0}, {210, kPid, 17}}));
  EXPECT_EQ(second[0].space, trace::kAnySpace);
  EXPECT_EQ(second[1].space, static_cast<trace::SpaceId>(kPid));
  EXPECT_TRUE(switches.take(0, true).empty());
  EXPECT_EQ(switches.missing(), 0U);
}

TEST(WindowsSwitches, LeavesOutCpusThatAreNotRecorded) {
  WindowsSwitches switches = of_process(0);
  switches.add_switch(switch_event(2, 100, 0, 0));
  EXPECT_TRUE(switches.take(2, true).empty());
}

TEST(WindowsSwitches, LeavesOutThreadsThatHaveNoTrace) {
  WindowsSwitches switches = of_process(kPid);
  switches.add_thread(kPid, 17, 1);
  switches.add_thread(99, 98, 1);
  switches.add_switch(switch_event(0, 100, 17, 98));
  switches.add_switch(switch_event(0, 200, 98, 17));
  EXPECT_EQ(rows(switches.take(0, false)), (Rows{{0, kPid, 17}, {200, kPid, 17}}));
}

// A thread of another process may be attached to the address space.
TEST(WindowsSwitches, GivesKernelCodeOfOtherProcessesNoThread) {
  WindowsSwitches switches = of_process(kPid, true);
  switches.add_thread(kPid, 17, 1);
  switches.add_thread(99, 98, 1);
  switches.add_switch(switch_event(0, 100, 17, 98));
  EXPECT_EQ(rows(switches.take(0, false)), (Rows{{0, kPid, 17}, {100, kPid, trace::kNoId}}));
}

TEST(WindowsSwitches, NoticesAMissingSwitch) {
  WindowsSwitches switches = of_process(kPid);
  for (const std::int64_t tid : {17, 18, 19}) switches.add_thread(kPid, tid, 1);
  switches.add_switch(switch_event(0, 100, 17, 18));
  switches.add_switch(switch_event(0, 300, 19, 17));  // from 18 to 19 is missing
  EXPECT_EQ(rows(switches.take(0, false)),
            (Rows{{0, kPid, 17}, {100, kPid, 18}, {100, kPid, trace::kNoId}, {300, kPid, 17}}));
  EXPECT_EQ(switches.missing(), 1U);
}

TEST(WindowsSwitches, RefusesTimesThatGoBack) {
  WindowsSwitches switches = of_process(kPid);
  for (const std::int64_t tid : {17, 18}) switches.add_thread(kPid, tid, 1);
  switches.add_switch(switch_event(0, 100, 17, 18));
  switches.add_switch(switch_event(0, 99, 18, 17));
  EXPECT_EQ(rows(switches.take(0, false)), (Rows{{0, kPid, 17}, {100, kPid, 18}}));
  EXPECT_EQ(switches.missing(), 1U);
}

TEST(WindowsSwitches, DoubtsThreadsNearALoss) {
  WindowsSwitches switches = of_process(kPid);
  for (const std::int64_t tid : {17, 18}) switches.add_thread(kPid, tid, 1);
  switches.add_switch(switch_event(0, 100, 17, 18));
  switches.add_switch(switch_event(1, 110, 0, 17));
  switches.add_loss();
  switches.add_switch(switch_event(0, 200, 18, 17));  // 18 may have made room for others before
  switches.add_switch(switch_event(0, 300, 17, 18));
  EXPECT_EQ(
      rows(switches.take(0, true)),
      (Rows{{0, kPid, 17}, {100, kPid, 18}, {100, kPid, trace::kNoId}, {200, kPid, 17}, {300, kPid, 18}}));
  EXPECT_EQ(rows(switches.take(1, true)), (Rows{{110, kPid, 17}, {110, kPid, trace::kNoId}}));
}

TEST(WindowsSwitches, KeepsTheProcessAtALossWherePacketsCorrectIt) {
  for (const bool kernel : {false, true}) {
    WindowsSwitches switches = of_process(0, kernel);
    switches.add_thread(kPid, 17, 1);
    switches.add_switch(switch_event(0, 100, 0, 17));
    switches.add_loss();
    const auto found = switches.take(0, true);
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[2].tid, trace::kNoId);
    EXPECT_EQ(found[2].pid, kernel ? kPid : trace::kNoId);
    EXPECT_EQ(found[2].space, kernel ? static_cast<trace::SpaceId>(kPid) : trace::kAnySpace);
  }
}

TEST(WindowsSwitches, WaitsForTheProcessOfAThread) {
  WindowsSwitches switches = of_process(0);
  switches.add_switch(switch_event(0, 100, 0, 17));
  EXPECT_EQ(rows(switches.take(0, false)), (Rows{{0, 0, 0}}));
  switches.add_thread(kPid, 17, 120);  // told of late
  switches.add_switch(switch_event(0, 200, 17, 66));
  EXPECT_EQ(rows(switches.take(0, false)), (Rows{{100, kPid, 17}}));
  EXPECT_EQ(rows(switches.take(0, true)), (Rows{{200, trace::kNoId, 66}}));  // never told of
}

TEST(WindowsSwitches, WaitsForABoundedNumberOfSwitches) {
  WindowsSwitches switches = of_process(0);
  for (std::uint64_t tsc = 0; tsc < 10000; tsc += 2) {
    switches.add_switch(switch_event(0, tsc, 0, 66));
    switches.add_switch(switch_event(0, tsc + 1, 66, 0));
  }
  EXPECT_GT(switches.take(0, false).size(), 5000U);
}

TEST(WindowsSwitches, KnowsNumbersThatAreUsedAgain) {
  WindowsSwitches switches = of_process(0);
  switches.add_thread(kPid, 17, 50);
  switches.add_thread(99, 17, 150);  // the driver tells sooner than ETW
  switches.add_switch(switch_event(0, 100, 0, 17));
  switches.add_switch(switch_event(0, 160, 17, 0));
  switches.add_switch(switch_event(0, 170, 0, 17));
  EXPECT_EQ(rows(switches.take(0, false)), (Rows{{0, 0, 0}, {100, kPid, 17}, {160, 0, 0}, {170, 99, 17}}));
}

// Thread 17 until 200, thread 18 of the same process until 300, the idle thread until 400, and thread 98 of
// another process then.
WindowsSwitches of_branches(bool kernel) {
  WindowsSwitches switches = of_process(0, kernel);
  for (const std::int64_t tid : {17, 18}) switches.add_thread(kPid, tid, 1);
  switches.add_thread(99, 98, 1);
  switches.add_switch(switch_event(0, 200, 17, 18));
  switches.add_switch(switch_event(0, 300, 18, 0));
  switches.add_switch(switch_event(0, 400, 0, 98));
  switches.add_switch(switch_event(0, 900, 98, 17));
  return switches;
}

std::vector<std::int64_t> between(WindowsSwitches switches, std::uint64_t since, std::uint64_t until) {
  const auto found = switches.thread_between(0, since, until, false);
  if (!found) return {};
  EXPECT_EQ(found->tsc, since);
  return {found->pid, found->tid, static_cast<std::int64_t>(found->space)};
}

using Ids = std::vector<std::int64_t>;
constexpr std::int64_t kNone = trace::kNoId;
constexpr auto kAny = static_cast<std::int64_t>(trace::kAnySpace);

TEST(WindowsSwitches, FindsTheThreadThatRanAllTheTime) {
  for (const bool kernel : {false, true}) {
    EXPECT_EQ(between(of_branches(kernel), 100, 199), (Ids{kPid, 17, kPid}));
    EXPECT_EQ(between(of_branches(kernel), 200, 299), (Ids{kPid, 18, kPid}));
    EXPECT_EQ(between(of_branches(kernel), 310, 390), (Ids{0, 0, kAny}));
    EXPECT_EQ(between(of_branches(kernel), 100, 250), (Ids{kPid, kNone, kPid}));  // two of a process
    EXPECT_EQ(between(of_branches(kernel), 100, 500), (Ids{kNone, kNone, kAny}));
    EXPECT_EQ(between(of_branches(kernel), 500, 899), (Ids{99, 98, 99}));
    EXPECT_EQ(between(of_branches(kernel), 500, 900), (Ids{}));  // events have not come that far
  }
}

TEST(WindowsSwitches, MindsTheIdleThreadWhereKernelBranchesAreStored) {
  EXPECT_EQ(between(of_branches(false), 250, 350), (Ids{kPid, 18, kPid}));
  EXPECT_EQ(between(of_branches(true), 250, 350), (Ids{kNone, kNone, kPid}));
}

TEST(WindowsSwitches, KnowsNoThreadBetweenTimesNearALoss) {
  WindowsSwitches switches = of_branches(false);
  switches.add_loss();
  EXPECT_EQ(between(switches, 850, 899), (Ids{99, 98, 99}));
  const auto last = switches.thread_between(0, 910, 950, true);
  ASSERT_TRUE(last);
  EXPECT_EQ(last->pid, kNone);
  const auto other = of_branches(false).thread_between(1, 910, 950, true);  // no event at all
  ASSERT_TRUE(other);
  EXPECT_EQ(other->tid, kNone);
}

TEST(WindowsSwitches, KeepsABoundedNumberOfSwitchesForBranches) {
  WindowsSwitches switches = of_process(0);
  switches.add_thread(kPid, 17, 1);
  for (std::uint64_t tsc = 2; tsc < 200'000; tsc += 2) {
    switches.add_switch(switch_event(0, tsc, 0, 17));
    switches.add_switch(switch_event(0, tsc + 1, 17, 0));
  }
  EXPECT_EQ(switches.thread_between(0, 1000, 1001, false)->tid, kNone);
  EXPECT_EQ(switches.thread_between(0, 199'990, 199'991, false)->tid, 17);
}

}  // namespace
}  // namespace ptkit::capture
