// kernel/common/pt_ring.h: records that wrap, that find no room, and whom they wake up.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "common/pt_ops.h"
#include "common/pt_ring.h"

namespace {

constexpr std::uint64_t kBytes = 4096;

class Ring : public testing::Test {
 protected:
  Ring() {
    ring_.data = memory_.data();
    ring_.bytes = kBytes;
    pt_ring_reset(&ring_);
  }

  bool write(std::uint64_t tsc, std::uint32_t status = 0) {
    ptkit_record_exit record = {};
    record.record = {
        .type = PTKIT_RECORD_EXIT, .size = sizeof(record), .cpu = 3, .tsc = tsc, .pid = 7, .tid = 8};
    record.status = static_cast<std::int32_t>(status);
    return pt_ring_write(&ring_, &record.record);
  }

  // The record at the tail, which moves behind it.
  template <class Record>
  Record read() {
    Record record = {};
    std::vector<std::uint8_t> bytes(sizeof(record));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = memory_.at((ring_.tail + i) % kBytes);
    std::memcpy(&record, bytes.data(), sizeof(record));
    EXPECT_EQ(pt_ring_consume(&ring_, ring_.tail + sizeof(record)), 0);
    return record;
  }

  // Writes until a record finds no room; returns how many found it.
  std::uint64_t fill() {
    std::uint64_t written = 0;
    while (ring_.lost == 0) {
      write(written);
      written += ring_.lost == 0;
    }
    return written;
  }

  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(kBytes, 0xff);
  pt_ring ring_ = {};
};

TEST_F(Ring, ResetEmptiesIt) {
  write(1);
  pt_ring_reset(&ring_);
  EXPECT_EQ(ring_.head, 0U);
  EXPECT_EQ(memory_, std::vector<std::uint8_t>(kBytes, 0));
}

TEST_F(Ring, RecordsComeOutAsTheyWentIn) {
  std::mt19937 random(1);
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  for (int turn = 0; turn < 5000; ++turn) {
    if (random() % 2 == 0 && ring_.head - ring_.tail + sizeof(ptkit_record_exit) <= kBytes) {
      write(in, static_cast<std::uint32_t>(in));
      ++in;
    } else if (out < in) {
      const auto record = read<ptkit_record_exit>();
      ASSERT_EQ(record.record.tsc, out);
      ASSERT_EQ(record.status, static_cast<std::int32_t>(out));
      ++out;
    }
  }
  EXPECT_GT(out * sizeof(ptkit_record_exit), 4 * kBytes);  // it wrapped
  EXPECT_EQ(ring_.lost, 0U);
}

TEST_F(Ring, KeepsWhatWasNotReadAndReportsLosses) {
  const std::uint64_t written = fill();
  EXPECT_EQ(written, kBytes / sizeof(ptkit_record_exit));
  write(100);
  EXPECT_EQ(ring_.lost, 2U);
  // Room for the record alone is too little: the LOST record comes first.
  for (std::uint64_t i = 0; i < 1; ++i) EXPECT_EQ(read<ptkit_record_exit>().record.tsc, i);
  write(101);
  EXPECT_EQ(ring_.lost, 3U);
  EXPECT_EQ(read<ptkit_record_exit>().record.tsc, 1U);
  write(102);
  EXPECT_EQ(ring_.lost, 3U);
  for (std::uint64_t i = 2; i < written; ++i) EXPECT_EQ(read<ptkit_record_exit>().record.tsc, i);
  const auto lost = read<ptkit_record_lost>();
  EXPECT_EQ(lost.record.type, PTKIT_RECORD_LOST);
  EXPECT_EQ(lost.record.size, sizeof(lost));
  EXPECT_EQ(lost.record.cpu, 3U);
  EXPECT_EQ(lost.record.tsc, 102U);
  EXPECT_EQ(lost.record.pid, 0);
  EXPECT_EQ(lost.record.tid, 0);
  EXPECT_EQ(lost.count, 3U);
  EXPECT_EQ(read<ptkit_record_exit>().record.tsc, 102U);
  EXPECT_EQ(ring_.tail, ring_.head);
}

TEST_F(Ring, WakesUpAtAQuarterAndAtTheFirstLoss) {
  std::vector<std::uint64_t> woken;
  for (std::uint64_t i = 0; i < 200; ++i)
    if (write(i)) woken.push_back(i);
  const std::uint64_t quarter = (kBytes / 4 + sizeof(ptkit_record_exit) - 1) / sizeof(ptkit_record_exit);
  const std::vector<std::uint64_t> expected{quarter - 1, kBytes / sizeof(ptkit_record_exit)};
  EXPECT_EQ(woken, expected);
  EXPECT_TRUE(pt_ring_is_readable(&ring_));
  EXPECT_EQ(pt_ring_consume(&ring_, ring_.head), 0);
  EXPECT_FALSE(pt_ring_is_readable(&ring_));
}

TEST_F(Ring, TailsAreBetweenTheLastOneAndHead) {
  write(1);
  EXPECT_EQ(pt_ring_consume(&ring_, ring_.head + 1), PT_E_INVALID);
  EXPECT_EQ(pt_ring_consume(&ring_, 8), 0);
  EXPECT_EQ(pt_ring_consume(&ring_, 0), PT_E_INVALID);
  EXPECT_EQ(pt_ring_consume(&ring_, 8), 0);
  ptkit_status status = {};
  pt_ring_status(&ring_, &status);
  EXPECT_EQ(status.sideband_head, sizeof(ptkit_record_exit));
  EXPECT_EQ(status.sideband_tail, 8U);
  EXPECT_EQ(status.sideband_lost, 0U);
}

TEST(NoRing, IsNotReadable) {
  const pt_ring none = {};
  EXPECT_FALSE(pt_ring_is_readable(&none));
}

}  // namespace
