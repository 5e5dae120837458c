#include <gtest/gtest.h>

#include "trace_unit/msr/capabilities.h"

namespace ptkit::trace_unit::msr {
namespace {

// CPUID of a Skylake client.
const std::vector<CpuidRow> kSkylake{
    {.leaf = 1, .eax = 0x506e3},
    {.leaf = 7, .ebx = 0x029c6fbf},
    {.leaf = 0x14, .subleaf = 0, .eax = 1, .ebx = 0xf, .ecx = 7},
    {.leaf = 0x14, .subleaf = 1, .eax = 0x02490002, .ebx = 0x003f3fff},
    {.leaf = 0x15, .eax = 2, .ebx = 0xa0},
    {.leaf = 0x80000008, .eax = 0x3027},
};

TEST(Capabilities, ReadRecordedCpuid) {
  ASSERT_TRUE(has_trace_unit(kSkylake));
  std::vector<CpuidRow> rows = kSkylake;
  rows[1].ebx &= ~(1U << 25);
  EXPECT_FALSE(has_trace_unit(rows));
  const Capabilities capabilities = msr::capabilities(kSkylake);
  EXPECT_TRUE(capabilities.cr3_filter());
  EXPECT_TRUE(capabilities.psb_cyc());
  EXPECT_TRUE(capabilities.mtc());
  EXPECT_FALSE(capabilities.preservation());
  EXPECT_TRUE(capabilities.topa());
  EXPECT_TRUE(capabilities.topa_multiple());
  EXPECT_TRUE(capabilities.single_range());
  EXPECT_EQ(capabilities.ranges(), 2U);
  EXPECT_EQ(capabilities.mtc_periods(), 0x249U);
  EXPECT_EQ(capabilities.cyc_thresholds(), 0x3fffU);
  EXPECT_EQ(capabilities.psb_periods(), 0x3fU);
  EXPECT_EQ(capabilities.physical_bits, 39);
  EXPECT_EQ(capabilities.linear_bits, 48);
  EXPECT_EQ(capabilities.tsc_ctc_numerator, 0xa0U);
  EXPECT_EQ(capabilities.tsc_ctc_denominator, 2U);
  EXPECT_FALSE(capabilities.needs_branch_en);
}

TEST(Capabilities, EmptyWithoutCpuid) {
  EXPECT_FALSE(has_trace_unit({}));
  const Capabilities capabilities = msr::capabilities({});
  EXPECT_EQ(capabilities.ranges(), 0U);
  EXPECT_FALSE(capabilities.memory_output());
  EXPECT_EQ(capabilities.physical_bits, 36);
}

TEST(Capabilities, EmptyWithoutSubLeaf1) {
  std::vector<CpuidRow> rows = kSkylake;
  rows[2].eax = 0;
  EXPECT_EQ(msr::capabilities(rows).mtc_periods(), 0U);
  EXPECT_EQ(msr::capabilities(rows).ranges(), 0U);
}

TEST(Capabilities, RecognizeBroadwell) {
  for (const std::uint32_t signature : {0x306d4U, 0x40671U, 0x406f1U, 0x50662U}) {
    const CpuidRow row{.leaf = 1, .eax = signature};
    EXPECT_TRUE(msr::capabilities(std::span(&row, 1)).needs_branch_en) << std::hex << signature;
  }
}

TEST(Cpuid, ReadsThisProcessor) {
  for (const CpuidRow& row : read_cpuid()) EXPECT_NE(row.leaf, 0U);
  static_cast<void>(msr::capabilities(read_cpuid()));
#if defined(__x86_64__)
  ASSERT_FALSE(read_cpuid().empty());
  EXPECT_EQ(read_cpuid()[0].leaf, 1U);
  EXPECT_NE(read_cpuid()[0].eax, 0U);
#endif
}

}  // namespace
}  // namespace ptkit::trace_unit::msr
