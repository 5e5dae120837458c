// kernel/common/pt_lbr.h: both kinds of stacks, the newest branch first.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>

#include "common/pt_lbr.h"

namespace {

std::uint32_t arch_lbr_bit;  // CPUID takes no context
std::map<std::uint32_t, std::uint64_t> registers;

void read_cpuid(std::uint32_t leaf, std::uint32_t /*subleaf*/, std::uint32_t words[4]) {
  words[0] = words[1] = words[2] = 0;
  words[3] = leaf == 7 ? arch_lbr_bit : 0;
}

int read_register(void* /*context*/, std::uint32_t msr, std::uint64_t* value) {
  const auto found = registers.find(msr);
  if (found == registers.end()) return -1;
  *value = found->second;
  return 0;
}

pt_lbr read_stack() {
  const pt_ops ops = {.write = nullptr, .read = read_register, .barrier = nullptr, .ctx = nullptr};
  pt_lbr lbr = {};
  pt_lbr_read(read_cpuid, &ops, &lbr);
  return lbr;
}

void add_records(std::uint32_t from, std::uint32_t to, std::uint32_t info, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    registers[from + i] = 0x1000 + i;
    registers[to + i] = 0x2000 + i;
    if (info != 0) registers[info + i] = 0x3000 + i;
  }
}

TEST(PtLbr, ModelSpecificStackIsARing) {
  registers.clear();
  arch_lbr_bit = 0;
  add_records(PT_MSR_LASTBRANCH_0_FROM_IP, PT_MSR_LASTBRANCH_0_TO_IP, PT_MSR_LBR_INFO_0, 16);
  registers[PT_MSR_LASTBRANCH_TOS] = 2;
  registers[PT_MSR_DEBUGCTL] = 1U << PT_DEBUGCTL_LBR;
  const pt_lbr lbr = read_stack();
  ASSERT_EQ(lbr.count, 16U);
  EXPECT_TRUE(lbr.enabled);
  EXPECT_FALSE(lbr.architectural);
  EXPECT_EQ(lbr.branches[0].from, 0x1002U);
  EXPECT_EQ(lbr.branches[2].to, 0x2000U);
  EXPECT_EQ(lbr.branches[3].info, 0x300fU);
  EXPECT_EQ(lbr.branches[15].from, 0x1003U);
}

TEST(PtLbr, OldProcessorsHaveNoInfo) {
  registers.clear();
  arch_lbr_bit = 0;
  add_records(PT_MSR_LASTBRANCH_0_FROM_IP, PT_MSR_LASTBRANCH_0_TO_IP, 0, 4);
  registers[PT_MSR_LASTBRANCH_TOS] = 7;  // more than there are: modulo
  registers[PT_MSR_DEBUGCTL] = 0;
  const pt_lbr lbr = read_stack();
  ASSERT_EQ(lbr.count, 4U);
  EXPECT_FALSE(lbr.enabled);
  EXPECT_EQ(lbr.branches[0].from, 0x1003U);
  EXPECT_EQ(lbr.branches[0].info, 0U);
}

TEST(PtLbr, ArchitecturalStackBeginsWithTheNewest) {
  registers.clear();
  arch_lbr_bit = 1U << 19;
  add_records(PT_MSR_ARCH_LBR_0_FROM_IP, PT_MSR_ARCH_LBR_0_TO_IP, PT_MSR_ARCH_LBR_0_INFO, PT_LBR_COUNT);
  registers[PT_MSR_ARCH_LBR_CTL] = 1U << PT_ARCH_LBR_CTL_LBR_EN;
  registers[PT_MSR_ARCH_LBR_DEPTH] = 8;
  const pt_lbr lbr = read_stack();
  ASSERT_EQ(lbr.count, 8U);
  EXPECT_TRUE(lbr.architectural);
  EXPECT_TRUE(lbr.enabled);
  EXPECT_EQ(lbr.branches[7].to, 0x2007U);
}

TEST(PtLbr, DepthBeyondTheRegistersIsBounded) {
  registers.clear();
  arch_lbr_bit = 1U << 19;
  add_records(PT_MSR_ARCH_LBR_0_FROM_IP, PT_MSR_ARCH_LBR_0_TO_IP, PT_MSR_ARCH_LBR_0_INFO, PT_LBR_COUNT);
  registers[PT_MSR_ARCH_LBR_CTL] = 0;
  registers[PT_MSR_ARCH_LBR_DEPTH] = 1'000'000;
  EXPECT_EQ(read_stack().count, static_cast<std::uint32_t>(PT_LBR_COUNT));
}

TEST(PtLbr, NoRegisterIsNoStack) {
  registers.clear();
  arch_lbr_bit = 0;
  EXPECT_EQ(read_stack().count, 0U);
  arch_lbr_bit = 1U << 19;
  EXPECT_EQ(read_stack().count, 0U);
}

}  // namespace
