#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "base/hexadecimal.h"
#include "trace_unit/msr/explain.h"
#include "trace_unit/msr/program.h"

namespace ptkit::trace_unit::msr {
namespace {

std::string text(const MsrProgram& steps) {
  std::string out;
  for (const MsrStep& step : steps) {
    const std::string name = register_name(static_cast<std::uint32_t>(step.address));
    if (step.access == Access::READ) out += "read " + name;
    if (step.access == Access::WRITE) out += name + " = " + base::hexadecimal(step.value);
    if (step.access == Access::BARRIER) out += "barrier";
    if (step.access == Access::MEMORY)
      out += base::hexadecimal(step.address) + " = " + base::hexadecimal(step.value);
    if (step.access == Access::APIC) out += "APIC " + base::hexadecimal(step.address);
    out += '\n';
  }
  return out;
}

RegisterValues values() {
  RtitConfig config;
  config.user = config.branch_en = config.cr3_filter = true;
  config.output_base = 0x100000;
  config.output_mask_ptrs = 0xffff;
  config.cr3_match = 0x7000;
  config.addr1_cfg = PT_ADDR_CFG_FILTER;
  config.addr[1] = {0x1000, 0x2000};
  return values_of(config);
}

TEST(MsrProgramTest, StartsAsKernelCommon) {
  EXPECT_EQ(text(program(Sequence::START, values())),
            "read IA32_RTIT_CTL\n"
            "IA32_RTIT_STATUS = 0x0\n"
            "IA32_RTIT_OUTPUT_BASE = 0x100000\n"
            "IA32_RTIT_OUTPUT_MASK_PTRS = 0xffff\n"
            "IA32_RTIT_CR3_MATCH = 0x7000\n"
            "IA32_RTIT_ADDR1_A = 0x1000\n"
            "IA32_RTIT_ADDR1_B = 0x2000\n"
            "IA32_RTIT_CTL = 0x1000002089\n");
}

TEST(MsrProgramTest, StopReadsBackTheState) {
  EXPECT_EQ(text(program(Sequence::STOP, values())),
            "IA32_RTIT_CTL = 0x1000002088\nbarrier\nread IA32_RTIT_STATUS\nread IA32_RTIT_OUTPUT_BASE\n"
            "read IA32_RTIT_OUTPUT_MASK_PTRS\nIA32_RTIT_CTL = 0x0\n");
  EXPECT_EQ(text(program(Sequence::PAUSE, values())), "IA32_RTIT_CTL = 0x1000002088\nbarrier\n");
  EXPECT_EQ(text(program(Sequence::RESUME, values())), "IA32_RTIT_CTL = 0x1000002089\n");
}

TEST(MsrProgramTest, SwitchDoesNotReadCtl) {
  const std::string steps = text(program(Sequence::SWITCH, values(), values()));
  EXPECT_EQ(steps.find("IA32_RTIT_CTL = 0x1000002088"), 0U);
  EXPECT_EQ(steps.find("read IA32_RTIT_CTL\n"), std::string::npos);
  EXPECT_TRUE(steps.ends_with("IA32_RTIT_CTL = 0x1000002089\n"));
}

TEST(MsrProgramTest, DescribesEachStep) {
  for (const auto sequence : {Sequence::START, Sequence::PAUSE, Sequence::RESUME, Sequence::STOP,
                              Sequence::SWITCH, Sequence::INTERRUPT}) {
    for (const MsrStep& step : program(sequence, values(), values())) EXPECT_FALSE(step.words.empty());
  }
  EXPECT_EQ(program(Sequence::START, values()).back().words,
            "tracing begins: TraceEn, User, CR3Filter, BranchEn, ADDR1_CFG 1");
  EXPECT_EQ(program(Sequence::START, values())[3].words, "one range of 64 KiB, continues at byte 0 of it");
  EXPECT_TRUE(text(program(Sequence::INTERRUPT, values()))
                  .ends_with("IA32_PERF_GLOBAL_OVF_CTRL = 0x80000000000000\nAPIC 0x340\nAPIC 0xb0\n"));
}

TEST(BtsPlan, StartsAndRestoresTheDsArea) {
  const auto plan = plan_bts({.area = 0x1000, .buffer = {0x2000, 4096}, .reserve = 0, .os = false});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(text(plan.value().start),
            "read IA32_DEBUGCTL\nread IA32_DS_AREA\nIA32_DS_AREA = 0x1000\nIA32_DEBUGCTL = 0x2c0\n");
  EXPECT_EQ(text(plan.value().stop),
            "read IA32_DEBUGCTL\nIA32_DEBUGCTL = 0x0\nbarrier\nIA32_DS_AREA = 0x0\n");
  ASSERT_EQ(plan.value().memory.size(), 4U);
  EXPECT_EQ(plan.value().memory[2].address, 0x1010U);
  EXPECT_EQ(plan.value().memory[2].value, 0x2000U + 170 * 24);
  EXPECT_FALSE(plan_bts({.area = 0x1000, .buffer = {0x2000, 23}}).ok());
}

TEST(BtsPlan, SaysAtStartAloneThatBtsMustBeOff) {
  const auto plan = plan_bts({.area = 0x1000, .buffer = {0x2000, 4096}});
  ASSERT_TRUE(plan.ok());
  EXPECT_NE(plan.value().start.front().words.find("must be 0"), std::string::npos);
  EXPECT_EQ(plan.value().stop.front().words, "bits of other programs are kept");
  EXPECT_EQ(plan.value().stop[1].words,
            "TR, BTS, BTINT, BTS_OFF_OS and BTS_OFF_USR are 0; other bits as they were");
  EXPECT_TRUE(plan.value().interrupt.empty());
}

TEST(BtsPlan, ServesTheInterrupt) {
  const auto plan = plan_bts({.area = 0x1000, .buffer = {0x2000, 4096}, .reserve = 10});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan.value().memory.back().access, Access::APIC);
  EXPECT_EQ(text(plan.value().interrupt),
            "read IA32_DEBUGCTL\nIA32_DEBUGCTL = 0x0\nbarrier\n0x1008 = 0x2000\n"
            "IA32_PERF_GLOBAL_OVF_CTRL = 0x4000000000000000\n"
            "read IA32_DEBUGCTL\nIA32_DEBUGCTL = 0x1c0\nAPIC 0x340\nAPIC 0xb0\n");
}

TEST(BtsPlan, HasThe32BitAreaOfNetBurst) {
  const auto plan = plan_bts({.area = 0x1004,
                              .buffer = {0x2000, 4096},
                              .reserve = 10,
                              .os = false,
                              .bits32 = true,
                              .netburst = true});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(text(plan.value().memory),
            "0x1004 = 0x2000\n0x1008 = 0x2000\n0x100c = 0x2ffc\n0x1010 = 0x2f84\nAPIC 0x340\n");
  EXPECT_EQ(plan.value().start.back().value, 0x3cU);  // TR, BTS, BTINT, BTS_OFF_OS
  EXPECT_EQ(plan.value().start.back().words, "TR, BTS, BTINT, BTS_OFF_OS; other bits as they were");
  EXPECT_EQ(text(plan.value().interrupt),
            "read IA32_DEBUGCTL\nIA32_DEBUGCTL = 0x0\nbarrier\n0x1008 = 0x2000\n"
            "read IA32_DEBUGCTL\nIA32_DEBUGCTL = 0x3c\nAPIC 0x340\nAPIC 0xb0\n");
  EXPECT_FALSE(plan_bts({.area = 0x1002, .buffer = {0x2000, 4096}, .bits32 = true}).ok());
  EXPECT_FALSE(plan_bts({.area = 0x1000, .buffer = {0xffff'f800, 4096}, .bits32 = true}).ok());
}

TEST(OutputPlanTest, PlansASingleRange) {
  const auto plan = plan_single_range({0x200000, 1 << 20});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan.value().base, 0x200000U);
  EXPECT_EQ(plan.value().mask_ptrs, 0xfffffU);
  const auto refused = plan_single_range({0x280000, 1 << 20});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.failure().detail.find("1048576 bytes at 0x280000"), std::string::npos);
}

TEST(OutputPlanTest, PlansAdjacentTopaTables) {
  // 600 regions of 4 KiB take two tables.
  const Region region{0x1001000, 600 * 4096};
  const auto plan = plan_topa(0x800000, std::span(&region, 1), {.ring = true, .largest_size = 0}, {});
  ASSERT_TRUE(plan.ok());
  std::map<std::uint64_t, std::uint64_t> memory;
  for (const MsrStep& step : plan.value().memory) {
    EXPECT_EQ(step.access, Access::MEMORY);
    memory[step.address] = step.value;
  }
  EXPECT_EQ(memory.size(), 602U);
  EXPECT_EQ(memory[0x800000], 0x1001000U);
  EXPECT_EQ(memory[0x800ff8], 0x801000U | 1);
  EXPECT_EQ(memory[0x801000 + 89 * 8], 0x800000U | 1);
  EXPECT_EQ(plan.value().bytes, region.bytes);
  EXPECT_EQ(plan.value().mask_ptrs, 0x7fU);
}

TEST(OutputPlanTest, SetsInterruptsAsRequested) {
  const Region region{0x1000000, 1 << 20};
  for (const std::uint64_t bytes : {std::uint64_t{1} << 20, std::uint64_t{1} << 18, std::uint64_t{100'000}}) {
    const auto plan = plan_topa(0x800000, std::span(&region, 1), {.interrupt_bytes = bytes}, {});
    ASSERT_TRUE(plan.ok());
    std::uint64_t since = 0;
    std::size_t interrupts = 0;
    EXPECT_EQ(plan.value().memory.back().access, Access::APIC);
    for (const MsrStep& word : plan.value().memory) {
      if (word.access != Access::MEMORY || (word.value & 1) != 0) continue;  // END
      since += std::uint64_t{4096} << (word.value >> 6 & 15);
      if ((word.value & 4) == 0) continue;
      EXPECT_GE(since, bytes);
      EXPECT_LT(since, 2 * bytes);
      since = 0;
      ++interrupts;
    }
    EXPECT_EQ(interrupts, region.bytes / std::bit_ceil(bytes));
  }
}

TEST(OutputPlanTest, ExplainsInvalidPlans) {
  const auto detail = [](std::uint64_t table, Region region, Capabilities capabilities) {
    const auto plan = plan_topa(table, std::span(&region, 1), {}, capabilities);
    return plan.ok() ? std::string() : plan.failure().detail;
  };
  Capabilities one;
  one.leaf_14_ecx = 1;
  EXPECT_EQ(detail(0x1000, {0x100000, 1 << 20}, one), "");
  EXPECT_NE(detail(0x1000, {0x1000, 1 << 20}, one).find("one ToPA region only"), std::string::npos);
  EXPECT_NE(detail(0x1080, {0x1000, 4096}, {}).find("0x1080"), std::string::npos);
  EXPECT_NE(detail(0x1000, {0x1000, 100}, {}).find("100 bytes at 0x1000"), std::string::npos);
  EXPECT_NE(detail(0x1000, {1ULL << 46, 4096}, {}).find("46 address bits"), std::string::npos);
  EXPECT_NE(detail(0x1000, {0, 0}, {}), "");
}

}  // namespace
}  // namespace ptkit::trace_unit::msr
