// kernel/common/pt_branches.h: parts of a buffer, and the marks around them.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "common/pt_branches.h"
#include "common/pt_unit.h"
#include "ptkit/rtit_regs.h"
#include "unit/kernel/fake_unit.h"

namespace {

using ptkit::tests::FakeUnit;

static_assert(sizeof(ptkit_branch_mark) == sizeof(pt_bts_record), "a mark takes the slot of a record");

constexpr std::uint64_t kBytes = 4096;
constexpr std::uint64_t kRecord = sizeof(pt_bts_record);
constexpr std::uint64_t kRecords = kBytes / kRecord;
constexpr std::uint64_t kReserve = kRecords / 16;

std::uint64_t clock_of_the_test = 0;

// memory_ is twice as long as the buffer: mappings that follow one another.
class Branches : public testing::Test {
 protected:
  Branches() {
    clock_of_the_test = 0;
    unit_.ops = &ops_;
    unit_.ticks = [] { return ++clock_of_the_test; };
    trace_.memory.bytes = kBytes;
    trace_.memory.linear = memory_.data();
    fake_.at(PT_MSR_DS_AREA) = 0x5000;
  }

  void make(std::uint64_t wake_up_bytes, bool ring = false, bool mirrored = false) {
    ptkit_config config = {};
    config.flags = PTKIT_TRACE_USER;
    config.wake_up_bytes = wake_up_bytes;
    trace_.ring = ring;
    trace_.wakes_up = wake_up_bytes != 0;
    trace_.memory.mirrored = mirrored;
    pt_branches_init(&trace_, &bts_, &config);
    bts_.thread.pid = 10;
    bts_.thread.tid = 11;
    ASSERT_EQ(pt_unit_reset(&trace_), 0);
  }

  bool run() {
    if (pt_unit_prepare(&unit_, &trace_)) pt_unit_start(&unit_, &trace_);
    return trace_.running;
  }
  bool stop() { return pt_unit_stop(&unit_, &trace_, true); }

  // The processor stores branches up to the end of its part; returns how many found room.
  std::uint64_t store(std::uint64_t count) {
    std::uint64_t done = 0;
    for (; done < count && bts_.area.bts_index < bts_.area.bts_maximum; ++done) {
      const pt_bts_record record = {.from = ++stored_, .to = 1, .flags = 0};
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the DS area has addresses
      std::memcpy(reinterpret_cast<void*>(bts_.area.bts_index), &record, kRecord);
      bts_.area.bts_index += kRecord;
      if (trace_.ring && bts_.area.bts_index == bts_.area.bts_maximum)
        bts_.area.bts_index = bts_.area.bts_base;
    }
    return done;
  }

  [[nodiscard]] ptkit_branch_mark mark_at(std::uint64_t record) const {
    ptkit_branch_mark mark = {};
    std::memcpy(&mark, memory_.data() + record * kRecord, kRecord);
    return mark;
  }
  [[nodiscard]] pt_bts_record branch_at(std::uint64_t record) const {
    pt_bts_record branch = {};
    std::memcpy(&branch, memory_.data() + record * kRecord, kRecord);
    return branch;
  }

  FakeUnit fake_;
  pt_ops ops_ = fake_.ops();
  pt_unit unit_ = {};
  pt_trace trace_ = {};
  pt_bts bts_ = {};
  std::uint64_t stored_ = 0;
  alignas(8) std::array<std::uint8_t, 2 * kBytes> memory_ = {};
};

TEST_F(Branches, MarksSurroundEachPart) {
  make(0);
  ASSERT_TRUE(run());
  EXPECT_EQ(fake_.at(PT_MSR_DEBUGCTL), pt_bts_debugctl(false, true, true));
  EXPECT_TRUE(pt_branches_are_none(&bts_));
  EXPECT_EQ(store(3), 3U);
  EXPECT_FALSE(pt_branches_are_none(&bts_));
  EXPECT_FALSE(stop());
  EXPECT_EQ(trace_.position, 5 * kRecord);
  EXPECT_EQ(fake_.at(PT_MSR_DEBUGCTL), 0U);
  EXPECT_EQ(fake_.at(PT_MSR_DS_AREA), 0x5000U);
  EXPECT_EQ(mark_at(0).from, 0U);
  EXPECT_EQ(mark_at(0).pid, 10);
  EXPECT_EQ(mark_at(0).tid, 11);
  EXPECT_EQ(mark_at(0).tsc, 1U);
  EXPECT_EQ(branch_at(3).from, 3U);
  EXPECT_EQ(mark_at(4).pid, ~10);
  EXPECT_EQ(mark_at(4).tid, ~11);
  EXPECT_EQ(mark_at(4).tsc, 2U);
}

TEST_F(Branches, AFullBufferEndsWithAMark) {
  make(0);
  ASSERT_TRUE(run());
  const std::uint64_t room = kRecords - 2;
  store(room - kReserve - 1);
  EXPECT_FALSE(pt_unit_interrupts(&unit_, &trace_));
  store(1);
  EXPECT_TRUE(pt_unit_interrupts(&unit_, &trace_));
  EXPECT_EQ(store(kRecords), kReserve);
  fake_.at(PT_MSR_PERF_GLOBAL_STATUS) = std::uint64_t{1} << PT_PERF_GLOBAL_OVF_BUFFER | 1;
  stop();
  EXPECT_EQ(fake_.at(PT_MSR_PERF_GLOBAL_STATUS), 1U);
  EXPECT_EQ(trace_.position, kRecords * kRecord);
  EXPECT_TRUE(trace_.full);
  EXPECT_EQ(trace_.stops, 1U);  // the processor may have had more branches
  EXPECT_EQ(mark_at(kRecords - 1).pid, ~10);
  EXPECT_FALSE(run());
  EXPECT_EQ(trace_.stops, 1U);
}

TEST_F(Branches, WakeUpsComeAfterTheirBytes) {
  make(1024);
  ASSERT_TRUE(run());
  store(1024 / kRecord - 2);
  EXPECT_FALSE(pt_unit_interrupts(&unit_, &trace_));
  stop();
  EXPECT_FALSE(pt_unit_interrupts(&unit_, &trace_));  // the mark at the end is no branch
  ASSERT_TRUE(run());
  store(1024 / kRecord - 1);
  EXPECT_TRUE(pt_unit_interrupts(&unit_, &trace_));
}

// Every branch comes out, in order, and none that was not consumed is overwritten.
void expect_all_branches(std::uint64_t branches, const std::vector<pt_bts_record>& read) {
  std::uint64_t next = 1;
  for (const pt_bts_record& record : read) {
    if (record.from == 0) continue;
    ASSERT_EQ(record.from, next++);
  }
  EXPECT_EQ(next, branches + 1);
}

class Streams : public Branches, public testing::WithParamInterface<bool> {
 protected:
  // The bytes from tail to head, and a tail behind them.
  void read_all() {
    const std::uint64_t size = trace_.memory.used;
    ASSERT_LE(trace_.head - trace_.tail, size);
    for (; trace_.tail < trace_.head; ++trace_.tail) bytes_.push_back(memory_.at(trace_.tail % size));
  }
  // What is mapped twice is the same memory: a part that began at `position` may go on behind it.
  void mirror(std::uint64_t position, std::uint64_t bytes) {
    if (position + bytes > kBytes)
      std::memcpy(memory_.data(), memory_.data() + kBytes, position + bytes - kBytes);
  }
  std::vector<std::uint8_t> bytes_;
};

TEST_P(Streams, LoseNothingWhereTheReaderKeepsUp) {
  std::mt19937_64 random(3);
  make(1024, false, GetParam());
  std::uint64_t branches = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    ASSERT_TRUE(run());
    const std::uint64_t position = trace_.position;
    const std::uint64_t head = trace_.head;
    const std::uint64_t wanted = random() % (kReserve + 1);
    ASSERT_EQ(store(wanted), wanted);
    branches += wanted;
    stop();
    ASSERT_EQ(trace_.error, 0);
    ASSERT_EQ(trace_.position, trace_.head % trace_.memory.used);
    mirror(position, trace_.head - head);
    read_all();
  }
  std::vector<pt_bts_record> records(bytes_.size() / kRecord);
  std::memcpy(records.data(), bytes_.data(), records.size() * kRecord);
  ASSERT_EQ(bytes_.size() % kRecord, 0U);
  EXPECT_GT(bytes_.size(), 100 * kBytes);
  EXPECT_EQ(trace_.stops, 0U);
  expect_all_branches(branches, records);
}

TEST_P(Streams, WaitForTheReader) {
  make(1024, false, GetParam());
  while (run()) {
    store(20);
    stop();
  }
  EXPECT_TRUE(trace_.full);
  EXPECT_LE(trace_.head, trace_.memory.used);
  EXPECT_EQ(trace_.stops, 1U);
  EXPECT_EQ(trace_.stopped_at[0], trace_.head);
  EXPECT_FALSE(run());
  EXPECT_EQ(trace_.stops, 1U);  // at the same position
  ASSERT_EQ(pt_trace_consume(&trace_, trace_.head), 0);
  EXPECT_TRUE(run());
}

INSTANTIATE_TEST_SUITE_P(MappedOnceAndTwice, Streams, testing::Bool());

TEST_F(Branches, ARingKeepsTheNewest) {
  make(0, true);
  ASSERT_TRUE(run());
  EXPECT_EQ(fake_.at(PT_MSR_DEBUGCTL), pt_bts_debugctl(false, true, false));
  store(10);
  stop();
  EXPECT_FALSE(trace_.lapped);
  EXPECT_EQ(trace_.position, 12 * kRecord);
  ASSERT_TRUE(run());
  store(kRecords - 14);
  bts_.area.bts_index = bts_.area.bts_maximum - kRecord;
  store(1);
  bts_.area.bts_index = bts_.area.bts_maximum;  // some processors leave it there
  stop();
  EXPECT_TRUE(trace_.lapped);
  EXPECT_EQ(trace_.position, kRecord);
  EXPECT_EQ(mark_at(0).pid, ~10);
}

TEST_F(Branches, TellsWhereAnotherUserTookTheArea) {
  make(0);
  ASSERT_TRUE(run());
  store(2);
  fake_.at(PT_MSR_DS_AREA) = 0x9000;
  EXPECT_TRUE(stop());
  EXPECT_EQ(trace_.clears, 1U);
  EXPECT_EQ(trace_.cleared_at, 4 * kRecord);
  EXPECT_EQ(fake_.at(PT_MSR_DS_AREA), 0x9000U);
  ASSERT_TRUE(run());
  fake_.at(PT_MSR_DEBUGCTL) = 0;
  EXPECT_TRUE(stop());
  EXPECT_EQ(trace_.clears, 2U);
}

TEST_F(Branches, RefusesAnAreaInUse) {
  make(0);
  fake_.at(PT_MSR_DEBUGCTL) = pt_bts_debugctl(true, true, false);
  EXPECT_FALSE(run());
  EXPECT_EQ(trace_.error, PT_E_BUSY);
}

TEST_F(Branches, StillRunsWhereARegisterFaults) {
  make(0);
  ASSERT_TRUE(run());
  fake_.broken.insert(PT_MSR_DEBUGCTL);
  stop();
  EXPECT_EQ(trace_.error, PT_E_FAULT);
  EXPECT_TRUE(trace_.running);
}

TEST_F(Branches, DoesNotTrustAnIndexOutsideOfItsPart) {
  make(0);
  ASSERT_TRUE(run());
  bts_.area.bts_index = bts_.area.bts_maximum + kRecord;
  stop();
  EXPECT_EQ(trace_.error, PT_E_UNIT);
  EXPECT_FALSE(trace_.running);
}

// Questions about the trace unit have one answer with Branch Trace Store.
TEST_F(Branches, HaveNothingToDoWithTheTraceUnit) {
  make(0);
  fake_.at(PT_MSR_RTIT_STATUS) = ~std::uint64_t{0};
  fake_.at(PT_MSR_PERF_GLOBAL_STATUS) = ~std::uint64_t{0};
  EXPECT_FALSE(pt_unit_has_stopped(&unit_, &trace_));
  EXPECT_FALSE(pt_unit_is_cleared(&unit_, &trace_));
  EXPECT_FALSE(pt_unit_is_live(&unit_, &trace_));
  pt_unit_acknowledge(&unit_, &trace_);
  EXPECT_EQ(fake_.at(PT_MSR_PERF_GLOBAL_STATUS), ~std::uint64_t{0});
}

}  // namespace
