// BTS buffers that were rings.
#include <gtest/gtest.h>

#include "formats/common/bts_buffer.h"

namespace ptkit::formats {
namespace {

using trace::BranchRecord;
using Records = std::vector<BranchRecord>;

constexpr std::uint64_t kKernel = 0xffff'ffff'8100'0000;

// User code that calls the kernel and returns, in the order of execution. Nothing but the end and the begin
// of it can break the order.
Records both_levels() {
  return {{.from_ip = 0x401010, .to_ip = 0x401000},       {.from_ip = 0x401020, .to_ip = kKernel},
          {.from_ip = kKernel + 8, .to_ip = kKernel + 4}, {.from_ip = kKernel + 9, .to_ip = 0x401022},
          {.from_ip = 0x401030, .to_ip = 0x401100},       {.from_ip = 0x401140, .to_ip = 0x401800}};
}

Records rotated(Records records, std::size_t by) {
  begin_with(records, by);
  return records;
}

std::string ips_of(const Records& records) {
  std::string text;
  for (const BranchRecord& record : records) text += std::to_string(record.from_ip) + " ";
  return text;
}

TEST(BtsRing, FindsTheSeamWhereTheOrderBreaks) {
  const Records records = both_levels();
  for (std::size_t by = 0; by < records.size(); ++by) {
    const Records ring = rotated(records, by);
    const RingSeam seam = find_seam(ring, trace::DsLayout::BITS64);
    EXPECT_TRUE(seam.certain) << by;
    EXPECT_EQ(ips_of(rotated(ring, seam.oldest)), ips_of(records)) << by;
  }
}

TEST(BtsRing, IsNotCertainIfTheSeamDoesNotBreakTheOrder) {
  Records records = both_levels();
  records.back().to_ip = 0x401008;  // straight on to the first record
  EXPECT_FALSE(find_seam(records, trace::DsLayout::BITS64).certain);
}

TEST(BtsRing, IsNotCertainIfTheOrderBreaksTwice) {
  Records records = both_levels();
  records[4].to_ip = 0x401150;  // above the next branch: records are missing
  EXPECT_FALSE(find_seam(records, trace::DsLayout::BITS64).certain);
  EXPECT_FALSE(find_seam({}, trace::DsLayout::BITS64).certain);
}

// User code alone: a signal or another thread may break the order, too.
TEST(BtsRing, IsNotCertainForOneLevel) {
  const Records user{{.from_ip = 0x401010, .to_ip = 0x401000}, {.from_ip = 0x401010, .to_ip = 0x402000}};
  EXPECT_FALSE(find_seam(user, trace::DsLayout::BITS64).certain);
  const Records kernel{{.from_ip = kKernel + 8, .to_ip = kKernel},
                       {.from_ip = kKernel + 8, .to_ip = kKernel + 64}};
  EXPECT_FALSE(find_seam(kernel, trace::DsLayout::BITS64).certain);
}

TEST(BtsRing, TakesFarStraightCodeForABreak) {
  Records records = both_levels();
  records.back().to_ip = 0x1000;  // below the first branch, by 4 MiB: straight code could lead there
  EXPECT_FALSE(find_seam(records, trace::DsLayout::BITS64).certain);
  for (BranchRecord& record : records) {
    if (record.from_ip < kKernel) record.from_ip += 0x5555'0000'0000;
    if (record.to_ip < kKernel) record.to_ip += 0x5555'0000'0000;
  }
  records.back().to_ip = 0x1000;  // by 85 TiB
  EXPECT_TRUE(find_seam(records, trace::DsLayout::BITS64).certain);
}

TEST(BtsRing, KnowsLevelsOf32BitSystems) {
  Records records = both_levels();
  for (BranchRecord& record : records) {
    if (record.from_ip >= kKernel) record.from_ip = record.from_ip - kKernel + 0xf700'0000;
    if (record.to_ip >= kKernel) record.to_ip = record.to_ip - kKernel + 0xf700'0000;
  }
  const RingSeam seam = find_seam(rotated(records, 2), trace::DsLayout::BITS32);
  EXPECT_TRUE(seam.certain);
  EXPECT_EQ(seam.oldest, 4U);
  EXPECT_FALSE(
      find_seam(rotated(records, 2), trace::DsLayout::BITS64).certain);  // there all of it is user code
}

TEST(BtsRing, BeginsAtTheIndex) {
  trace::DsRecords all{.records = both_levels(), .empty = 0, .left = 0};
  ASSERT_FALSE(begin_at_index(all, 2).has_value());
  EXPECT_EQ(ips_of(all.records), ips_of(rotated(both_levels(), 2)));
  all = {.records = both_levels(), .empty = 2, .left = 0};
  for (const std::uint64_t index : {6U, 7U, 8U}) {  // the ring has not wrapped
    ASSERT_FALSE(begin_at_index(all, index).has_value());
    EXPECT_EQ(ips_of(all.records), ips_of(both_levels()));
  }
  const auto failure = begin_at_index(all, 9);
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->detail, "bts_index=9: the buffer has 8 records");
}

}  // namespace
}  // namespace ptkit::formats
