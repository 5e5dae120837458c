// BTS records and branch stacks, as processors and the Linux kernel write them.
#include <gtest/gtest.h>

#include <cstring>

#include "trace/branch_records.h"

namespace ptkit::trace {
namespace {

template <typename T>
std::vector<std::uint8_t> bytes_of(const std::vector<T>& words) {
  std::vector<std::uint8_t> out(words.size() * sizeof(T));
  std::memcpy(out.data(), words.data(), out.size());
  return out;
}

constexpr std::uint32_t kKnown = RECORD_PREDICTION_KNOWN;
constexpr std::uint32_t kPredicted = RECORD_PREDICTED | kKnown;

TEST(BtsRecords, ReadsThreeWordsOfEightBytes) {
  const std::vector<std::uint64_t> words{0xffffffff81000010, 0x401000, 0x10, 0x401020, 0x401100, 0};
  std::vector<BranchRecord> records;
  EXPECT_EQ(append_ds_records(bytes_of(words), DsLayout::BITS64, records), 0U);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].from_ip, 0xffffffff81000010);
  EXPECT_EQ(records[0].to_ip, 0x401000U);
  EXPECT_EQ(records[0].flags, kPredicted);
  EXPECT_EQ(records[1].from_ip, 0x401020U);
  EXPECT_EQ(records[1].to_ip, 0x401100U);
  EXPECT_EQ(records[1].flags, 0U);
  EXPECT_EQ(records[1].tsc, 0U);
}

TEST(BtsRecords, ReadsThreeWordsOfFourBytesIn32BitAreas) {
  const std::vector<std::uint32_t> words{0xc0100000, 0x08048000, 0, 0x08048010, 0x08048100, 0x1f};
  std::vector<BranchRecord> records;
  EXPECT_EQ(append_ds_records(bytes_of(words), DsLayout::BITS32, records), 0U);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].from_ip, 0xc0100000U);
  EXPECT_EQ(records[0].to_ip, 0x08048000U);
  EXPECT_EQ(records[0].flags, RECORD_CODE32);
  EXPECT_EQ(records[1].from_ip, 0x08048010U);
  EXPECT_EQ(records[1].flags, kPredicted | RECORD_CODE32);
}

TEST(BtsRecords, CountsBytesOfACutRecord) {
  std::vector<std::uint8_t> bytes(24 * 2 + 7);
  std::vector<BranchRecord> records;
  EXPECT_EQ(append_ds_records(bytes, DsLayout::BITS64, records), 7U);
  EXPECT_EQ(records.size(), 2U);
  EXPECT_EQ(append_ds_records(bytes, DsLayout::BITS32, records), 7U);
  EXPECT_EQ(records.size(), 6U);
}

TEST(BtsRecords, InfersMispredictionOnlyIfAnyRecordIsPredicted) {
  std::vector<BranchRecord> silent(3);
  infer_prediction_known(silent);
  EXPECT_EQ(silent[1].flags, 0U);
  std::vector<BranchRecord> predicted(3);
  predicted[2].flags = kPredicted;
  infer_prediction_known(predicted);
  EXPECT_EQ(predicted[0].flags, kKnown);
  EXPECT_EQ(predicted[2].flags, kPredicted);
}

TEST(BtsRecords, LeavesOutUnwrittenRecordsOfABuffer) {
  std::vector<std::uint64_t> words(3 * 5);
  words[0] = words[4] = 0x401000;  // the second record has to_ip 0, and was written
  words[2] = 0x10;
  std::vector<std::uint8_t> bytes = bytes_of(words);
  bytes.resize(bytes.size() + 3);
  const DsRecords buffer = read_ds_buffer(bytes, DsLayout::BITS64);
  ASSERT_EQ(buffer.records.size(), 2U);
  EXPECT_EQ(buffer.empty, 3U);
  EXPECT_EQ(buffer.left, 3U);
  EXPECT_EQ(buffer.records[0].flags, kPredicted);
  EXPECT_EQ(buffer.records[1].flags, kKnown);
}

TEST(BranchStack, PutsOldestBranchFirst) {
  const std::vector<std::uint64_t> words{30, 31, 1 | 7U << 4U,  // the newest
                                         20, 21, 2 | 4,         //
                                         10, 11, 8,             //
                                         0,  0,  0};
  std::vector<BranchRecord> records(1);
  append_branch_stack(bytes_of(words), 500, true, records);
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[1].from_ip, 10U);
  EXPECT_EQ(records[1].flags, RECORD_ABORT | RECORD_FIRST);
  EXPECT_EQ(records[1].tsc, 0U);
  EXPECT_EQ(records[2].flags, kPredicted | RECORD_IN_TX);
  EXPECT_EQ(records[3].to_ip, 31U);
  EXPECT_EQ(records[3].flags, kKnown);
  EXPECT_EQ(records[3].cycles, 7U);
  EXPECT_EQ(records[3].tsc, 500U);
}

TEST(BranchStack, AcceptsEmptyStacks) {
  std::vector<BranchRecord> records(1);
  append_branch_stack({}, 500, true, records);
  append_branch_stack(std::vector<std::uint8_t>(24), 500, true, records);
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].tsc, 0U);
}

TEST(BranchStack, MarksEachRecordFirstIfBranchesAreLeftOut) {
  std::vector<BranchRecord> records;
  append_branch_stack(bytes_of(std::vector<std::uint64_t>{30, 31, 0, 10, 11, 0}), 500, false, records);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].flags, RECORD_FIRST);
  EXPECT_EQ(records[1].flags, RECORD_FIRST);
}

TEST(BtsAux, LeavesOutPaddingOfTheKernel) {
  std::vector<BranchRecord> records(1);
  append_bts_aux(bytes_of(std::vector<std::uint64_t>{0, 0, 0, 10, 11, 0, 0, 0, 0, 20, 21, 0x10}), true,
                 records);
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].flags, 0U);
  EXPECT_EQ(records[1].from_ip, 10U);
  EXPECT_EQ(records[1].flags, RECORD_FIRST);
  EXPECT_EQ(records[2].to_ip, 21U);
  EXPECT_EQ(records[2].flags, kPredicted);
  append_bts_aux(bytes_of(std::vector<std::uint64_t>{0, 0, 0}), true, records);
  EXPECT_EQ(records.size(), 3U);
}

TEST(BranchRecords, BecomeBytesOfAStream) {
  std::vector<BranchRecord> records(2);
  records[1].to_ip = 0x1234;
  const TraceBuffer buffer = to_buffer(records);
  ASSERT_EQ(buffer.size(), 64U);
  EXPECT_EQ(base::load_le<8>(buffer.bytes().data() + 40), 0x1234U);
  EXPECT_EQ(to_buffer({}).size(), 0U);
}

}  // namespace
}  // namespace ptkit::trace
