// Threads and address spaces of rows: switches by time and by offset, and PIP packets.
#include <gtest/gtest.h>

#include "unit/support/traces/scene.h"

namespace ptkit::flow {
namespace {

std::vector<std::uint8_t> nops() { return std::vector<std::uint8_t>(16, 0x90); }

TEST(Contexts, FollowSwitchesByTime) {
  Scene scene(nops());
  scene.stream().switches = {{100, 1, 11, 0}, {200, 2, 22, 0}};
  scene.with_time = true;
  scene.psb().add(PacketKind::TSC, 50).mode(64).fup(0x1000).psbend().end(0x1001);
  scene.add(PacketKind::TSC, 150).pge(0x1004).end(0x1005);
  const std::uint64_t enabled = scene.last;
  scene.add(PacketKind::TSC, 250).pge(0x1006).end(0x1007);
  const Collect rows = scene.decode();
  ASSERT_EQ(rows.contexts.size(), 3u);
  EXPECT_EQ(rows.contexts[0].tid, trace::kNoId);
  EXPECT_EQ(rows.contexts[1].tid, 11);
  EXPECT_EQ(rows.contexts[2].tid, 22);
  EXPECT_GT(rows.contexts[2].offset, enabled);
}

// The next packet with a time comes long after the switch, which follows code that executed before it.
TEST(Contexts, UserContextStaysWhilePacketsAreEnabled) {
  for (const bool kernel : {false, true}) {
    Scene scene(nops());
    trace::Configuration& traced = scene.bundle().configuration;
    traced.rtit_ctl_known = true;
    traced.rtit_ctl = 1U << 3U | (kernel ? 1U << 2U : 0U);  // User, OS
    scene.configuration.clock = {
        .tsc_ctc_numerator = 1, .tsc_ctc_denominator = 1, .mtc_period_known = true, .mtc_period = 3};
    scene.stream().switches = {{50, 1, 11, 0}, {100, 2, 22, 0}};
    scene.with_time = true;
    scene.psb().add(PacketKind::TSC, 64).add(PacketKind::TMA, 64).mode(64).fup(0x1000).psbend();
    const std::uint64_t on = scene.add(PacketKind::MTC, 9).add(PacketKind::MNT, 7).last;
    const std::uint64_t again = scene.end(0x1002).add(PacketKind::TSC, 800).pge(0x1004).last;
    const Collect rows = scene.end(0x1005).decode();
    ASSERT_EQ(rows.contexts.size(), 3u);
    EXPECT_EQ(rows.contexts[1].tid, 11);
    EXPECT_EQ(rows.contexts[2].tid, 22);
    EXPECT_EQ(rows.contexts[2].offset, kernel ? on : again);
  }
}

// Clocks that stopped for some rounds of MTC make the intervals of all that came before them wide.
TEST(Contexts, StayUntilClocksStop) {
  for (const bool kernel : {false, true}) {
    Scene scene(nops());
    trace::Configuration& traced = scene.bundle().configuration;
    traced.rtit_ctl_known = true;
    traced.rtit_ctl = 1U << 3U | (kernel ? 1U << 2U : 0U);  // User, OS
    traced.clock = {
        .tsc_ctc_numerator = 1, .tsc_ctc_denominator = 1, .mtc_period_known = true, .mtc_period = 3};
    scene.configuration.clock = traced.clock;
    scene.stream().switches = {{50, 1, 11, 0}, {3000, 2, 22, 0}};
    scene.with_time = true;
    scene.psb().add(PacketKind::TSC, 64).add(PacketKind::TMA, 64).mode(64).fup(0x1000).psbend();
    scene.add(PacketKind::MTC, 9).end(0x1002).add(PacketKind::MTC, 10).pge(0x1004).end(0x1005);
    const std::uint64_t stopped = scene.add(PacketKind::TSC, 7000).last;
    const Collect rows = scene.pge(0x1006).end(0x1007).decode();
    ASSERT_EQ(rows.contexts.size(), 3u);
    EXPECT_EQ(rows.contexts[1].tid, 11);
    EXPECT_EQ(rows.contexts[2].tid, 22);
    EXPECT_GE(rows.contexts[2].offset, stopped);
  }
}

TEST(Contexts, FollowSwitchesByOffset) {
  Scene scene(nops());
  scene.bundle().spaces.push_back({.cr3 = 0xa000, .cr3_known = true});
  scene.bundle().spaces.push_back({.cr3 = 0xb000, .cr3_known = true});
  scene.put(0x1004, {0xeb, 0x02}, trace::kTscMin, trace::kTscMax, 2);  // jmp 1008
  scene.begin().end(0x1001);
  const std::uint64_t first = scene.add(PacketKind::PTW, 1, 1).last;
  scene.pge(0x1004).end(0x1005);
  const std::uint64_t second = scene.add(PacketKind::PTW, 2, 1).last;
  scene.add(PacketKind::PIP, 0xb000).pge(0x1004).end(0x1008);
  const std::uint64_t other = scene.add(PacketKind::PIP, 0xa000).last;
  scene.pge(0x1004).end(0x1005);
  scene.stream().switches_by_offset = true;
  scene.stream().switches = {{0, 1, 11, 1, first}, {0, trace::kNoId, 22, 2, second}};
  scene.configuration.rtit_ctl_known = true;
  const Collect rows = scene.decode();
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.ips, (Ips{0x1000, 0x1004, 0x1004, 0x1004}));
  ASSERT_EQ(rows.contexts.size(), 4u);
  EXPECT_EQ(rows.contexts[0].tid, trace::kNoId);
  EXPECT_EQ(rows.contexts[1].tid, 11);
  EXPECT_EQ(rows.contexts[1].offset, first);
  EXPECT_EQ(rows.contexts[2].tid, 22);
  EXPECT_EQ(rows.contexts[2].space, 2u);
  // No switch record has this CR3: its process is known, its thread is unknown.
  EXPECT_EQ(rows.contexts[3].tid, trace::kNoId);
  EXPECT_EQ(rows.contexts[3].space, 1u);
  EXPECT_EQ(rows.contexts[3].offset, other);
}

// Kernel and user code of two processes, with page tables of their own each; the second one comes at 180.
class Tables : public ::testing::Test {
 protected:
  Tables() : scene_({0x90, 0x0f, 0x22, 0xd8, 0x90, 0x90, 0x90}) {  // 1001: mov cr3, rax
    trace::TraceBundle& bundle = scene_.bundle();
    bundle.configuration.rtit_ctl = 1U << 2U;  // OS
    bundle.configuration.rtit_ctl_known = true;
    bundle.spaces.push_back({.pid = 1, .cr3 = 0xa000, .cr3_known = true, .user_cr3 = 0xb000});
    bundle.spaces.push_back({.pid = 2, .cr3 = 0xc000, .cr3_known = true, .user_cr3 = 0xd000});
    scene_.stream().switches = {{50, 1, 11, 1}, {180, 2, 22, 2}};
    scene_.with_time = true;
    scene_.psb().add(PacketKind::TSC, 100).add(PacketKind::PIP, 0xa000).mode(64).fup(0x1000).psbend();
  }
  Scene scene_;
};

TEST_F(Tables, PipGivesOffsetOfProcessSwitch) {
  scene_.add(PacketKind::PIP, 0xd000);
  const std::uint64_t tables = scene_.last;
  const Collect rows = scene_.end(0x1005).add(PacketKind::TSC, 200).pge(0x1006).end(0x1007).decode();
  ASSERT_EQ(rows.contexts.size(), 3u);
  EXPECT_EQ(rows.contexts[1].tid, 11);
  EXPECT_EQ(rows.contexts[2].tid, 22);
  EXPECT_EQ(rows.contexts[2].space, 2u);
  EXPECT_EQ(rows.contexts[2].offset, tables);
}

TEST_F(Tables, PipOfSameProcessChangesNothing) {
  const Collect rows = scene_.add(PacketKind::PIP, 0xb000).end(0x1005).decode();
  ASSERT_EQ(rows.contexts.size(), 2u);
  EXPECT_EQ(rows.contexts[1].tid, 11);
}

TEST_F(Tables, LostPipSwitchesByTime) {
  scene_.end(0x1001).add(PacketKind::TSC, 200).pge(0x1004);
  const Collect rows = scene_.end(0x1005).decode();
  ASSERT_EQ(rows.contexts.size(), 3u);
  EXPECT_EQ(rows.contexts[2].tid, 22);
}

// exec(): the new tables are in use before the recorder hears of them.
TEST_F(Tables, PipMayPrecedeSwitchRecord) {
  scene_.bundle().spaces.push_back({.pid = 1, .cr3 = 0xe000, .cr3_known = true});
  scene_.stream().switches = {{50, 1, 11, 1}, {300, 1, 11, 3}, {400, 2, 22, 2}};
  scene_.add(PacketKind::PIP, 0xe000).end(0x1005).add(PacketKind::TSC, 200).pge(0x1006);
  scene_.end(0x1007).add(PacketKind::TSC, 350).pge(0x1006);
  const Collect rows = scene_.end(0x1007).decode();
  ASSERT_EQ(rows.contexts.size(), 4u);
  EXPECT_EQ(rows.contexts[2].space, 3u);
  EXPECT_EQ(rows.contexts[2].tid, 11);
  EXPECT_EQ(rows.contexts[3].space, 3u);  // the record itself, which changes nothing any more
  EXPECT_EQ(rows.contexts[3].tid, 11);
}

}  // namespace
}  // namespace ptkit::flow
