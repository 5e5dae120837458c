// Trace bytes in memory: single ranges, tables of physical addresses, and what is wrong with either.
#include <gtest/gtest.h>

#include <numeric>

#include "unit/support/units/machine.h"

namespace ptkit::ptmodel {
namespace {

using namespace test;

constexpr std::uint64_t kTable = 0x10000;

std::vector<std::uint8_t> numbers(std::size_t count) {
  std::vector<std::uint8_t> out(count);
  std::iota(out.begin(), out.end(), std::uint8_t{1});
  return out;
}

OutputPointers pointers_of(std::uint64_t base, std::uint64_t mask, std::uint64_t offset = 0) {
  return {base, mask | 0x7f | offset << 32};
}

std::uint64_t offset_of(const OutputPointers& pointers) { return pointers.mask_ptrs >> 32; }
std::uint64_t entry_of(const OutputPointers& pointers) { return (pointers.mask_ptrs & 0xffffffff) >> 7; }

struct Memory : testing::Test {
  explicit Memory(const Capabilities& can = {}) : output(can, platform) {}

  bool begin(std::uint64_t base, std::uint64_t mask, std::uint64_t offset, std::uint64_t ctl) {
    pointers = pointers_of(base, mask, offset);
    return output.begin(ctl, pointers);
  }
  bool begin_topa(const std::vector<std::uint64_t>& entries, std::uint64_t entry = 0,
                  std::uint64_t offset = 0) {
    for (std::size_t i = 0; i < entries.size(); ++i) platform.put_entry(kTable + 8 * i, entries[i]);
    return begin(kTable, entry << 7, offset, kTopa);
  }
  TraceOutput::Outcome put(std::size_t count) { return output.write(numbers(count), pointers); }

  FakePlatform platform;
  TraceOutput output;
  OutputPointers pointers;
};

TEST_F(Memory, ASingleRangeWraps) {
  ASSERT_TRUE(begin(0x4000, 0xff, 0xf0, 0));
  EXPECT_FALSE(put(40).stopped);
  EXPECT_EQ(offset_of(pointers), 0xf0U + 40 - 0x100);
  EXPECT_EQ(platform.read(0x40f0, 16), numbers(16));
  const auto all = numbers(40);
  EXPECT_EQ(platform.read(0x4000, 24), std::vector<std::uint8_t>(all.begin() + 16, all.end()));
  ASSERT_EQ(platform.writes.size(), 2U);
  put(0x100 - 24);
  EXPECT_EQ(offset_of(pointers), 0U);
  EXPECT_EQ(pointers.mask_ptrs & 0xffffffff, 0xffU);
  EXPECT_EQ(pointers.base, 0x4000U);
}

TEST_F(Memory, ASingleRangeMayHaveAnyPowerOfTwo) {
  for (unsigned bits = 7; bits <= 32; ++bits) {
    const std::uint64_t mask = field_mask(0, bits);
    const std::uint64_t base = mask + 1;
    ASSERT_TRUE(begin(base, mask, mask, 0)) << bits;
    platform.writes.clear();
    put(2);
    EXPECT_EQ(platform.writes,
              (std::vector<std::pair<std::uint64_t, std::size_t>>{{base + mask, 1}, {base, 1}}));
    EXPECT_EQ(offset_of(pointers), 1U);
  }
}

TEST_F(Memory, WrongSingleRangesAreErrors) {
  EXPECT_FALSE(begin(0x4000, 0x17f, 0, 0)) << "a hole in the mask";
  EXPECT_FALSE(begin(0x4000, 0x7fff, 0, 0)) << "base and mask overlap";
  EXPECT_FALSE(begin(0x4000, 0xff, 0x100, 0)) << "offset beyond the mask";
  EXPECT_TRUE(begin(0x4000, 0xff, 0xff, 0));
}

TEST_F(Memory, RegionsOfEverySizeFollowEachOther) {
  for (std::uint64_t n = 0; n < 16; ++n) {
    SCOPED_TRACE(n);
    const std::uint64_t size = std::uint64_t{4096} << n;
    ASSERT_TRUE(begin_topa({0x1000'0000 | topa_size(n), 0x2000'0000}, 0, size - 3));
    platform.writes.clear();
    const TraceOutput::Outcome outcome = put(5);
    EXPECT_FALSE(outcome.error || outcome.stopped || outcome.interrupt);
    EXPECT_EQ(platform.writes, (std::vector<std::pair<std::uint64_t, std::size_t>>{
                                   {0x1000'0000 + size - 3, 3}, {0x2000'0000, 2}}));
    EXPECT_EQ(entry_of(pointers), 1U);
    EXPECT_EQ(offset_of(pointers), 2U);
  }
}

TEST_F(Memory, TheLastEntryLinksToATable) {
  const std::uint64_t other = 0x20000;
  platform.put_entry(other, 0x9000);
  platform.put_entry(other + 8, kTable | kEnd);
  ASSERT_TRUE(begin_topa({0x8000, other | kEnd}));
  put(4096);
  EXPECT_EQ(pointers.base, other);
  EXPECT_EQ(entry_of(pointers), 0U);
  put(4096);
  EXPECT_EQ(pointers.base, kTable);  // round and round
  EXPECT_EQ(entry_of(pointers), 0U);
  EXPECT_EQ(platform.read(0x9000, 4096), numbers(4096));
  ASSERT_TRUE(begin_topa({0x8000, other | kEnd}, 1)) << "the pointers may stand at the link";
  EXPECT_EQ(pointers.base, other);
}

TEST_F(Memory, TheSecondEntryMayLinkToItsOwnTable) {
  ASSERT_TRUE(begin_topa({0x8000, kTable | kEnd}, 0, 4000));
  EXPECT_FALSE(put(100).error);
  EXPECT_EQ(pointers.base, kTable);
  EXPECT_EQ(offset_of(pointers), 4U);
}

TEST_F(Memory, IntTellsAndGoesOn) {
  ASSERT_TRUE(begin_topa({0x8000 | kInt, 0x9000}));
  EXPECT_FALSE(put(4095).interrupt);
  EXPECT_TRUE(put(1).interrupt);
  EXPECT_FALSE(put(4095).interrupt);
  EXPECT_EQ(entry_of(pointers), 1U);
}

TEST_F(Memory, StopLeavesThePointersBehindTheRegion) {
  ASSERT_TRUE(begin_topa({0x8000 | kStop | kInt, 0x9000}, 0, 4090));
  platform.writes.clear();
  const TraceOutput::Outcome outcome = put(10);
  EXPECT_TRUE(outcome.stopped);
  EXPECT_TRUE(outcome.interrupt);
  EXPECT_FALSE(outcome.error);
  EXPECT_EQ(platform.writes.size(), 1U);
  EXPECT_EQ(entry_of(pointers), 0U);
  EXPECT_EQ(offset_of(pointers), 4096U);
  EXPECT_FALSE(output.begin(kTopa, pointers)) << "an offset behind the region is an error";
}

TEST_F(Memory, MalformedFirstEntries) {
  EXPECT_TRUE(begin_topa({0x8000}));
  for (const unsigned reserved : {1U, 3U, 5U, 10U, 11U}) {
    EXPECT_FALSE(begin_topa({0x8000 | bit(reserved)})) << reserved;
  }
  for (unsigned number = 46; number < 64; ++number) {
    EXPECT_FALSE(begin_topa({bit(number)})) << number;
  }
  EXPECT_TRUE(begin_topa({bit(45)}));
  for (std::uint64_t n = 1; n < 16; ++n) {
    EXPECT_FALSE(begin_topa({std::uint64_t{4096} << (n - 1) | topa_size(n)}))
        << "not aligned to its size: " << n;
  }
  EXPECT_FALSE(begin_topa({0x8000 | kEnd})) << "END in entry 0";
  EXPECT_FALSE(begin_topa({0x8000}, 0, 4096)) << "offset behind the region";
  pointers = pointers_of(kTable + 0x80, 0);
  EXPECT_FALSE(output.begin(kTopa, pointers)) << "a table that is not aligned";
}

TEST_F(Memory, MalformedEntriesAreFoundWhenTheyAreReached) {
  const std::uint64_t end_to_end = 0x20000;
  platform.put_entry(end_to_end, kTable | kEnd);
  for (const std::uint64_t entry : {0x9000 | bit(1), 0x9000 | topa_size(1), kTable | kEnd | kInt,
                                    kTable | kEnd | kStop, end_to_end | kEnd}) {
    SCOPED_TRACE(entry);
    ASSERT_TRUE(begin_topa({0x8000, entry}));
    EXPECT_FALSE(put(4095).error);
    const TraceOutput::Outcome outcome = put(3);
    EXPECT_TRUE(outcome.error);
    EXPECT_EQ(offset_of(pointers), 0U);
    EXPECT_EQ(entry_of(pointers), pointers.base == kTable ? 1U : 0U);
  }
}

struct SingleEntry : Memory {
  static Capabilities one_region() {
    Capabilities can;
    can.leaf_14_ecx &= ~(1U << PT_CPUID_14_ECX_TOPA_MULTIPLE);
    return can;
  }
  SingleEntry() : Memory(one_region()) {}
};

TEST_F(SingleEntry, TheSecondEntryHasToLeadBack) {
  ASSERT_TRUE(begin_topa({0x8000 | kInt, kTable | kEnd}));
  EXPECT_TRUE(put(4096).interrupt);
  EXPECT_EQ(offset_of(pointers), 0U);
  EXPECT_FALSE(put(4096).error);
  ASSERT_TRUE(begin_topa({0x8000, 0x20000 | kEnd}));
  EXPECT_TRUE(put(4096).error);
  ASSERT_TRUE(begin_topa({0x8000, 0x9000}));
  EXPECT_TRUE(put(4096).error);
}

TEST_F(Memory, TransportIgnoresTopa) {
  ASSERT_TRUE(begin(0x1234'5680, 0, 0x500, kTopa | bit(PT_CTL_FABRIC_EN)));
  put(7);
  EXPECT_EQ(platform.transport, numbers(7));
  EXPECT_TRUE(platform.writes.empty());
  EXPECT_EQ(offset_of(pointers), 0x500U);
}

}  // namespace
}  // namespace ptkit::ptmodel
