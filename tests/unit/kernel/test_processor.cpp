// kernel/common/pt_processor.h: capabilities as CPUID and registers give them, and those that processors
// share.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <utility>

#include "common/pt_processor.h"
#include "ptkit/rtit_regs.h"

namespace {

using Words = std::array<std::uint32_t, 4>;

// CPUID takes no context.
std::map<std::pair<std::uint32_t, std::uint32_t>, Words> leaves;
std::map<std::uint32_t, std::uint64_t> registers;

void read_cpuid(std::uint32_t leaf, std::uint32_t subleaf, std::uint32_t words[4]) {
  const Words& given = leaves[{leaf, subleaf}];
  for (std::size_t i = 0; i < given.size(); ++i) words[i] = given[i];
}

int read_register(void* /*context*/, std::uint32_t msr, std::uint64_t* value) {
  const auto found = registers.find(msr);
  if (found == registers.end()) return -1;
  *value = found->second;
  return 0;
}

ptkit_caps read_caps() {
  const pt_ops ops = {.write = nullptr, .read = read_register, .barrier = nullptr, .ctx = nullptr};
  ptkit_caps caps;
  pt_read_caps(read_cpuid, &ops, &caps);
  return caps;
}

class PtProcessor : public testing::Test {
 protected:
  void SetUp() override {
    leaves = {
        {{1, 0},
         {0x906ea, 0, 1U << PT_CPUID_1_ECX_VMX | 1U << PT_CPUID_1_ECX_DTES64 | 1U << PT_CPUID_1_ECX_DS_CPL,
          1U << PT_CPUID_1_EDX_DS}},
        {{7, 0}, {1, 1U << PT_CPUID_7_EBX_PT, 0, 0}},
        {{7, 1}, {1U << PT_CPUID_7_1_EAX_LAM, 0, 0, 0}},
        {{0x14, 0}, {1, 0xf, 0x7, 0}},
        {{0x14, 1}, {0x02490002, 0x003f3fff, 0, 0}},
        {{0x15, 0}, {2, 250, 24'000'000, 0}},
    };
    registers = {{PT_MSR_VMX_MISC, std::uint64_t{1} << PT_VMX_MISC_PT_IN_VMX},
                 {PT_MSR_MISC_ENABLE, 0},
                 {PT_MSR_PLATFORM_INFO, 0x1e00},
                 {PT_MSR_PERF_GLOBAL_STATUS, 0}};
  }
};

TEST_F(PtProcessor, ReadsCpuidAndRegisters) {
  const ptkit_caps caps = read_caps();
  EXPECT_EQ(caps.cpuid_1_eax, 0x906eaU);
  EXPECT_EQ(caps.cpuid_14_0[1], 0xfU);
  EXPECT_EQ(caps.cpuid_14_1[0], 0x02490002U);
  EXPECT_EQ(caps.cpuid_15[1], 250U);
  EXPECT_EQ(caps.nominal_ratio, 0x1e);
  EXPECT_TRUE(caps.in_vmx);
  EXPECT_TRUE(caps.address_masking);
  EXPECT_TRUE(caps.interrupts);
  EXPECT_TRUE(caps.bts);
  EXPECT_TRUE(caps.bts_levels);
}

TEST_F(PtProcessor, ARegisterThatFaultsIsACapabilityLess) {
  registers.clear();
  const ptkit_caps caps = read_caps();
  EXPECT_EQ(caps.nominal_ratio, 0);
  EXPECT_FALSE(caps.in_vmx);
  EXPECT_FALSE(caps.interrupts);
  EXPECT_FALSE(caps.bts);
}

TEST_F(PtProcessor, BranchTraceStoreMayBeUnavailable) {
  registers[PT_MSR_MISC_ENABLE] = 1U << PT_MISC_ENABLE_BTS_UNAVAILABLE;
  EXPECT_FALSE(read_caps().bts);
}

TEST_F(PtProcessor, ALeafWithoutSubleavesIsNotReadFurther) {
  leaves[{0x14, 0}][0] = 0;
  leaves[{7, 0}][0] = 0;
  const ptkit_caps caps = read_caps();
  EXPECT_EQ(caps.cpuid_14_1[0], 0U);
  EXPECT_FALSE(caps.address_masking);
}

TEST_F(PtProcessor, HybridProcessorsShareWhatBothHave) {
  ptkit_caps caps = read_caps();
  leaves[{0x14, 0}] = {1, 0x5, 0x3, 0};
  leaves[{0x14, 1}] = {0x00490004, 0x000f0001, 0, 0};
  registers.erase(PT_MSR_PERF_GLOBAL_STATUS);
  const ptkit_caps other = read_caps();
  pt_keep_common(&caps, &other);
  EXPECT_EQ(caps.cpuid_14_0[1], 0x5U);
  EXPECT_EQ(caps.cpuid_14_0[2], 0x3U);
  EXPECT_EQ(caps.cpuid_14_1[0], 0x00490002U);  // two ranges, not none of 2 & 4
  EXPECT_EQ(caps.cpuid_14_1[1], 0x000f0001U);
  EXPECT_FALSE(caps.interrupts);
  EXPECT_TRUE(caps.in_vmx);
}

}  // namespace
