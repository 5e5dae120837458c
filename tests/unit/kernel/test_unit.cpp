// kernel/common/pt_unit.h: positions, room and losses of a trace, beside other users of the registers.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "common/pt_unit.h"
#include "ptkit/rtit_regs.h"
#include "unit/kernel/fake_unit.h"

namespace {

using ptkit::tests::FakeUnit;

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kRegions = 4;
constexpr std::uint64_t kSize = kRegions * kPage;
constexpr std::uint64_t kTable = 0x10000;
constexpr std::uint64_t kBuffer = 0x200000;

std::uint64_t bit(unsigned position) { return std::uint64_t{1} << position; }

// A trace of four regions of a page, on a unit that writes as far as its table lets it.
class Unit : public testing::Test {
 protected:
  Unit() {
    unit_.ops = &ops_;
    table_ = {.entries = entries_.data(), .physical = kTable, .begin = 0, .capacity = kRegions + 1};
    pt_memory& memory = trace_.memory;
    memory.bytes = memory.used = kSize;
    memory.last_page = last_page_.data();
    memory.regions = &region_;
    memory.region_count = 1;
    memory.tables = &table_;
    memory.table_count = 1;
    trace_.state.ctl = bit(PT_CTL_TOPA) | bit(PT_CTL_USER);
  }

  enum Mode { FULL, RING, WAKE_UPS };

  void make(Mode mode) {
    pt_topa_options options = {};
    options.ring = mode != FULL;
    options.interrupt_bytes = mode == WAKE_UPS ? kPage : 0;
    options.physical_bits = 46;
    trace_.ring = mode == RING;
    trace_.wakes_up = mode == WAKE_UPS;
    ASSERT_EQ(pt_topa_build(&trace_.memory.topa, &table_, 1, &region_, 1, &options), 0);
    ASSERT_EQ(pt_unit_reset(&trace_), 0);
  }

  void run() {
    if (pt_unit_prepare(&unit_, &trace_)) pt_unit_start(&unit_, &trace_);
  }
  bool stop(bool acknowledges = false) { return pt_unit_stop(&unit_, &trace_, acknowledges); }

  // The unit writes; returns how many bytes found room.
  std::uint64_t write(std::uint64_t bytes) {
    std::uint64_t& mask = fake_.at(PT_MSR_RTIT_OUTPUT_MASK_PTRS);
    std::uint64_t done = 0;
    while (done < bytes && (fake_.at(PT_MSR_RTIT_STATUS) & bit(PT_STATUS_STOPPED)) == 0) {
      const std::uint64_t index = (mask & 0xffffffff) >> PT_OUTPUT_TABLE_OFFSET_SHIFT;
      const std::uint64_t offset = mask >> PT_OUTPUT_OFFSET_SHIFT;
      const std::uint64_t part = std::min(bytes - done, kPage - offset);
      done += part;
      if (offset + part < kPage) {
        mask += part << PT_OUTPUT_OFFSET_SHIFT;
      } else if ((entries_.at(index) & bit(PT_TOPA_STOP)) != 0) {
        mask += part << PT_OUTPUT_OFFSET_SHIFT;
        fake_.at(PT_MSR_RTIT_STATUS) |= bit(PT_STATUS_STOPPED);
      } else {
        mask = ((index + 1) % kRegions) << PT_OUTPUT_TABLE_OFFSET_SHIFT | PT_OUTPUT_MASK_LOWEST;
      }
    }
    return done;
  }

  FakeUnit fake_;
  pt_ops ops_ = fake_.ops();
  pt_unit unit_ = {};
  pt_trace trace_ = {};
  pt_region region_ = {.base = kBuffer, .bytes = kSize};
  pt_table table_ = {};
  std::array<std::uint64_t, kRegions + 1> entries_ = {};
  std::array<std::uint64_t, kPage / 8> last_page_ = {};
};

TEST_F(Unit, FillsABufferUpToItsEnd) {
  make(FULL);
  run();
  EXPECT_TRUE(trace_.running);
  EXPECT_EQ(write(100), 100U);
  EXPECT_FALSE(stop());
  EXPECT_EQ(trace_.position, 100U);
  EXPECT_FALSE(trace_.running || trace_.full);
  run();
  EXPECT_EQ(write(2 * kSize), kSize - 100);
  stop();
  EXPECT_EQ(trace_.position, kSize);
  EXPECT_TRUE(trace_.full);
  run();
  EXPECT_FALSE(trace_.running);
}

TEST_F(Unit, NoticesThatARingHasWrapped) {
  make(RING);
  run();
  write(kSize - 1);
  last_page_.fill(~std::uint64_t{0});
  last_page_.back() &= ~std::uint64_t{0} >> 8;  // the last byte
  stop();
  EXPECT_FALSE(trace_.lapped);
  run();
  write(1 + 2 * kPage);
  last_page_.fill(~std::uint64_t{0});
  stop();
  EXPECT_EQ(trace_.position, 2 * kPage);
  EXPECT_TRUE(trace_.lapped);
}

// Whatever the reader does, no byte that it has not consumed is overwritten, and each stop is counted.
TEST_F(Unit, WaitsForItsReader) {
  std::mt19937_64 random(1);
  make(WAKE_UPS);
  trace_.wanted = true;
  std::uint64_t written = 0;
  std::uint64_t stops = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    if (!trace_.running) run();
    if (trace_.running) {
      const std::uint64_t wanted = random() % (2 * kPage);
      written += write(wanted);
      stops += (fake_.at(PT_MSR_RTIT_STATUS) & bit(PT_STATUS_STOPPED)) != 0;
      stop(random() % 2 == 0);
    }
    ASSERT_EQ(trace_.error, 0);
    ASSERT_EQ(trace_.head, written);
    ASSERT_EQ(trace_.position, written % kSize);
    ASSERT_EQ(trace_.stops, stops);
    ASSERT_LE(trace_.head - trace_.tail, kSize);
    if (random() % 3 != 0) continue;
    ASSERT_EQ(pt_trace_consume(&trace_, trace_.tail + random() % (trace_.head - trace_.tail + 1)), 0);
  }
  EXPECT_GT(stops, 10U);
  EXPECT_GT(written, 20 * kSize);
  EXPECT_LE(trace_.stopped_at[1], trace_.stopped_at[0]);
}

TEST_F(Unit, GoesOnAfterAStopWithAPsb) {
  make(WAKE_UPS);
  run();
  fake_.at(PT_MSR_RTIT_STATUS) |= std::uint64_t{7} << PT_STATUS_PACKET_BYTE_COUNT_SHIFT;
  EXPECT_EQ(write(2 * kSize), kSize);
  stop(true);
  EXPECT_EQ(trace_.stops, 1U);
  EXPECT_EQ(trace_.stopped_at[0], kSize);
  EXPECT_FALSE(pt_unit_has_room(&trace_));
  EXPECT_TRUE(trace_.full);
  ASSERT_EQ(pt_trace_consume(&trace_, kPage), 0);
  EXPECT_TRUE(pt_unit_has_room(&trace_));
  EXPECT_EQ(trace_.state.status, 0U);
  pt_unit_start(&unit_, &trace_);
  EXPECT_EQ(write(2 * kSize), kPage);
}

TEST_F(Unit, PutsRegistersBack) {
  make(FULL);
  fake_.at(PT_MSR_RTIT_OUTPUT_BASE) = 0x7000;
  fake_.at(PT_MSR_RTIT_OUTPUT_MASK_PTRS) = 0x123;
  fake_.at(PT_MSR_RTIT_CTL) = bit(PT_CTL_OS);
  run();
  write(10);
  stop();
  pt_unit_leave(&unit_, &trace_);
  EXPECT_EQ(fake_.at(PT_MSR_RTIT_OUTPUT_BASE), 0x7000U);
  EXPECT_EQ(fake_.at(PT_MSR_RTIT_OUTPUT_MASK_PTRS), 0x123U);
  EXPECT_EQ(fake_.at(PT_MSR_RTIT_CTL), bit(PT_CTL_OS));
}

TEST_F(Unit, LeavesRegistersThatAnotherUserHasLoaded) {
  make(FULL);
  run();
  write(10);
  stop();
  run();
  fake_.at(PT_MSR_RTIT_CTL) = 0;
  fake_.at(PT_MSR_RTIT_OUTPUT_BASE) = 0x7000;
  EXPECT_TRUE(stop());
  EXPECT_EQ(trace_.error, PT_E_FOREIGN);
  EXPECT_EQ(trace_.position, 10U);
  EXPECT_EQ(trace_.clears, 1U);
  pt_unit_leave(&unit_, &trace_);
  EXPECT_EQ(fake_.at(PT_MSR_RTIT_OUTPUT_BASE), 0x7000U);
  // PTKIT_RESUME continues at the last stop.
  trace_.error = 0;
  run();
  EXPECT_EQ(fake_.at(PT_MSR_RTIT_OUTPUT_BASE), kTable);
  write(5);
  stop();
  EXPECT_EQ(trace_.position, 15U);
}

TEST_F(Unit, RefusesAUnitThatTraces) {
  make(FULL);
  fake_.at(PT_MSR_RTIT_CTL) = bit(PT_CTL_TRACE_EN);
  run();
  EXPECT_EQ(trace_.error, PT_E_BUSY);
  EXPECT_FALSE(trace_.running);
  EXPECT_FALSE(pt_unit_is_live(&unit_, &trace_));
}

TEST_F(Unit, CountsWhereTraceEnWasCleared) {
  make(FULL);
  run();
  write(10);
  EXPECT_FALSE(pt_unit_is_cleared(&unit_, &trace_));
  fake_.at(PT_MSR_RTIT_CTL) = 0;
  EXPECT_TRUE(pt_unit_is_cleared(&unit_, &trace_));
  EXPECT_TRUE(stop());
  EXPECT_EQ(trace_.error, 0);
  EXPECT_EQ(trace_.clears, 1U);
  EXPECT_EQ(trace_.cleared_at, 10U);
}

TEST_F(Unit, BeginsWithAPsbAfterAnotherTrace) {
  const std::uint64_t count = std::uint64_t{7} << PT_STATUS_PACKET_BYTE_COUNT_SHIFT;
  make(FULL);
  run();
  fake_.at(PT_MSR_RTIT_STATUS) = count;
  stop();
  pt_unit_leave(&unit_, &trace_);
  run();
  EXPECT_EQ(fake_.at(PT_MSR_RTIT_STATUS), count);  // nobody used the unit meanwhile
  stop();
  pt_unit_leave(&unit_, &trace_);
  fake_.at(PT_MSR_RTIT_OUTPUT_BASE) = 0x7000;
  run();
  EXPECT_EQ(fake_.at(PT_MSR_RTIT_STATUS), 0U);
  // A trace that was on another unit in between.
  fake_.at(PT_MSR_RTIT_STATUS) = count;
  stop();
  pt_unit_leave(&unit_, &trace_);
  FakeUnit other_fake;
  const pt_ops other_ops = other_fake.ops();
  pt_unit other = {};
  other.ops = &other_ops;
  ASSERT_TRUE(pt_unit_prepare(&other, &trace_));
  pt_unit_start(&other, &trace_);
  other_fake.at(PT_MSR_RTIT_STATUS) = count;
  pt_unit_stop(&other, &trace_, false);
  run();
  EXPECT_EQ(fake_.at(PT_MSR_RTIT_STATUS), 0U);
}

TEST_F(Unit, TellsErrorsOfTheUnit) {
  make(FULL);
  run();
  fake_.at(PT_MSR_RTIT_STATUS) |= bit(PT_STATUS_ERROR);
  EXPECT_TRUE(pt_unit_has_stopped(&unit_, &trace_));
  stop();
  EXPECT_EQ(trace_.error, PT_E_UNIT);
  EXPECT_FALSE(trace_.running);
  EXPECT_FALSE(pt_unit_has_room(&trace_));
}

TEST_F(Unit, StillRunsWhereARegisterFaults) {
  make(FULL);
  run();
  fake_.broken.insert(PT_MSR_RTIT_CTL);
  stop();
  EXPECT_EQ(trace_.error, PT_E_FAULT);
  EXPECT_TRUE(trace_.running);
  EXPECT_TRUE(pt_unit_is_live(&unit_, &trace_));
  fake_.broken.clear();
  stop();
  EXPECT_FALSE(trace_.running);
  EXPECT_FALSE(pt_unit_is_live(&unit_, &trace_));
}

TEST_F(Unit, PutsRegistersBackWhereTheStartFaults) {
  make(FULL);
  fake_.at(PT_MSR_RTIT_OUTPUT_BASE) = 0x7000;
  ASSERT_TRUE(pt_unit_prepare(&unit_, &trace_));
  fake_.broken.insert(PT_MSR_RTIT_CTL);
  pt_unit_start(&unit_, &trace_);
  EXPECT_EQ(trace_.error, PT_E_FAULT);
  EXPECT_FALSE(trace_.running);
  EXPECT_EQ(fake_.at(PT_MSR_RTIT_OUTPUT_BASE), 0x7000U);
}

TEST_F(Unit, AcknowledgesItsInterrupt) {
  make(WAKE_UPS);
  run();
  EXPECT_FALSE(pt_unit_interrupts(&unit_, &trace_));
  fake_.at(PT_MSR_PERF_GLOBAL_STATUS) = bit(PT_PERF_GLOBAL_TRACE_TOPA_PMI) | 1;
  EXPECT_TRUE(pt_unit_interrupts(&unit_, &trace_));
  pt_unit_acknowledge(&unit_, &trace_);
  EXPECT_EQ(fake_.at(PT_MSR_PERF_GLOBAL_STATUS), 1U);
  fake_.at(PT_MSR_PERF_GLOBAL_STATUS) |= bit(PT_PERF_GLOBAL_TRACE_TOPA_PMI);
  stop(true);
  EXPECT_EQ(fake_.at(PT_MSR_PERF_GLOBAL_STATUS), 1U);
}

TEST_F(Unit, WritesASingleRange) {
  trace_.memory.single_range = true;
  trace_.ring = true;
  trace_.state.ctl = bit(PT_CTL_USER);
  ASSERT_EQ(pt_unit_reset(&trace_), 0);
  run();
  EXPECT_EQ(fake_.at(PT_MSR_RTIT_OUTPUT_BASE), kBuffer);
  fake_.at(PT_MSR_RTIT_OUTPUT_MASK_PTRS) += std::uint64_t{0x321} << PT_OUTPUT_OFFSET_SHIFT;
  stop();
  EXPECT_EQ(trace_.position, 0x321U);
  run();
  fake_.at(PT_MSR_RTIT_CTL) = 0;
  fake_.at(PT_MSR_RTIT_OUTPUT_BASE) += kSize;
  stop();
  EXPECT_EQ(trace_.error, PT_E_FOREIGN);
}

TEST_F(Unit, TakesTailsUpToHead) {
  make(WAKE_UPS);
  run();
  write(100);
  stop();
  EXPECT_EQ(pt_trace_consume(&trace_, 101), PT_E_INVALID);
  EXPECT_EQ(pt_trace_consume(&trace_, 100), 0);
  EXPECT_EQ(pt_trace_consume(&trace_, 99), PT_E_INVALID);
  trace_.wakes_up = false;
  EXPECT_EQ(pt_trace_consume(&trace_, 100), PT_E_INVALID);
}

TEST_F(Unit, StatusHasAllOfIt) {
  make(WAKE_UPS);
  run();
  write(2 * kSize);
  stop();
  trace_.started = trace_.running = trace_.lapped = trace_.full = true;
  trace_.clears = 2;
  trace_.cleared_at = 9;
  trace_.tail = 5;
  ptkit_status status = {};
  status.cpu = 3;
  status.error = -7;
  pt_trace_status(&trace_, &status);
  EXPECT_EQ(status.flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_RUNNING | PTKIT_STATUS_LAPPED |
                              PTKIT_STATUS_FULL | PTKIT_STATUS_CLEARED);
  EXPECT_EQ(status.position, 0U);
  EXPECT_EQ(status.rtit_status, bit(PT_STATUS_STOPPED));
  EXPECT_EQ(status.head, kSize);
  EXPECT_EQ(status.tail, 5U);
  EXPECT_EQ(status.stops, 1U);
  EXPECT_EQ(status.stopped_at[0], kSize);
  EXPECT_EQ(status.stopped_at[1], 0U);
  EXPECT_EQ(status.clears, 2U);
  EXPECT_EQ(status.cleared_at, 9U);
  EXPECT_EQ(status.cpu, 3U);
  EXPECT_EQ(status.error, -7);  // the driver's
}

// Only the last page is looked at, from the position on if that is in it.
TEST(MemoryUse, IsFoundInTheLastPage) {
  std::array<std::uint8_t, kPage> bytes = {};
  alignas(8) std::array<std::uint64_t, kPage / 8> page = {};
  pt_memory memory = {};
  memory.bytes = 2 * kPage;
  memory.last_page = page.data();
  for (const std::uint64_t offset : {0ULL, 1ULL, 2047ULL, 4088ULL, 4095ULL}) {
    bytes.fill(0);
    bytes.at(offset) = 1;
    std::memcpy(page.data(), bytes.data(), kPage);
    EXPECT_TRUE(pt_memory_used_from(&memory, 0)) << offset;
    EXPECT_TRUE(pt_memory_used_from(&memory, kPage + offset)) << offset;
    EXPECT_FALSE(pt_memory_used_from(&memory, kPage + offset + 1)) << offset;
  }
}

}  // namespace
