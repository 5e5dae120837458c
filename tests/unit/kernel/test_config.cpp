// kernel/common/pt_config.h: what a configuration becomes, and which field is refused.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "common/pt_config.h"
#include "ptkit/rtit_regs.h"

namespace {

std::uint64_t bit(unsigned position) { return std::uint64_t{1} << position; }

// A processor that can everything.
pt_caps every_capability() {
  return {.leaf_14_ebx = 0x1ff,
          .leaf_14_ecx = 0x7,
          .leaf_14_1_eax = 0xffff0004,
          .leaf_14_1_ebx = 0xffffffff,
          .physical_bits = 46,
          .linear_bits = 48,
          .needs_branch_en = false};
}

pt_config_limits every_feature() {
  return {
      .features = ~std::uint64_t{0}, .most_bytes = 1 << 30, .most_single_bytes = 1 << 22, .bts_levels = true};
}

ptkit_config usual_config() {
  ptkit_config config = {};
  config.buffer_bytes = 1 << 20;
  config.flags = PTKIT_TRACE_USER | PTKIT_TRACE_BRANCHES;
  return config;
}

struct Made {
  int error;
  std::uint32_t refused;
  pt_state state;
};

Made make(ptkit_config config, bool cr3_filter = false, const pt_caps& caps = every_capability(),
          const pt_config_limits& limits = every_feature()) {
  Made made = {};
  made.error = pt_config_make(&caps, &limits, &config, cr3_filter, &made.state);
  made.refused = config.refused;
  return made;
}

TEST(PtConfig, FlagsAndPeriodsBecomeBitsOfCtl) {
  ptkit_config config = usual_config();
  config.flags |= PTKIT_TRACE_MTC | PTKIT_TRACE_CYC | PTKIT_TRACE_NO_TNT;
  config.mtc_freq = 3;
  config.cyc_thresh = 5;
  config.psb_freq = 7;
  const Made made = make(config, true);
  ASSERT_EQ(made.error, 0);
  const std::uint64_t expected = bit(PT_CTL_USER) | bit(PT_CTL_BRANCH_EN) | bit(PT_CTL_MTC_EN) |
                                 bit(PT_CTL_CYC_EN) | bit(PT_CTL_DIS_TNT) | bit(PT_CTL_TOPA) |
                                 bit(PT_CTL_CR3_FILTER) | std::uint64_t{3} << PT_CTL_MTC_FREQ_SHIFT |
                                 std::uint64_t{5} << PT_CTL_CYC_THRESH_SHIFT |
                                 std::uint64_t{7} << PT_CTL_PSB_FREQ_SHIFT;
  EXPECT_EQ(made.state.ctl, expected);
}

TEST(PtConfig, RangesBecomeAddressRegisters) {
  ptkit_config config = usual_config();
  config.range_count = 2;
  config.ranges[0] = {0x1000, 0x1fff, PTKIT_RANGE_FILTER, 0};
  config.ranges[1] = {0x5000, 0x5000, PTKIT_RANGE_STOP, 0};
  const Made made = make(config);
  ASSERT_EQ(made.error, 0);
  EXPECT_EQ(made.state.ctl >> PT_CTL_ADDR0_CFG_SHIFT & 0xffff, 0x21U);
  EXPECT_EQ(made.state.addr[0], 0x1000U);
  EXPECT_EQ(made.state.addr[1], 0x1fffU);
  EXPECT_EQ(made.state.addr[3], 0x5000U);
}

TEST(PtConfig, BranchTraceStoreSetsNoBit) {
  ptkit_config config = usual_config();
  config.output = PTKIT_OUTPUT_BTS;
  const Made made = make(config);
  EXPECT_EQ(made.error, 0);
  EXPECT_EQ(made.state.ctl, 0U);
}

struct Refusal {
  std::string name;
  std::function<void(ptkit_config&)> change;
  int error;
  std::size_t field;
};

#define FIELD(name) offsetof(ptkit_config, name)

const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> list = {
      {"unknown flag", [](auto& c) { c.flags |= 1ULL << 40; }, PT_E_INVALID, FIELD(flags)},
      {"no level", [](auto& c) { c.flags = PTKIT_TRACE_BRANCHES; }, PT_E_INVALID, FIELD(flags)},
      {"period of MTC", [](auto& c) { c.mtc_freq = 16; }, PT_E_INVALID, FIELD(mtc_freq)},
      {"period of MTC alone", [](auto& c) { c.mtc_freq = 3; }, PT_E_INVALID, FIELD(mtc_freq)},
      {"threshold of CYC", [](auto& c) { c.cyc_thresh = 16; }, PT_E_INVALID, FIELD(cyc_thresh)},
      {"period of PSB", [](auto& c) { c.psb_freq = 16; }, PT_E_INVALID, FIELD(psb_freq)},
      {"five ranges", [](auto& c) { c.range_count = 5; }, PT_E_INVALID, FIELD(range_count)},
      {"range without action", [](auto& c) { c.range_count = 1; }, PT_E_INVALID, FIELD(ranges)},
      {"range beyond the count", [](auto& c) { c.ranges[2].last = 1; }, PT_E_INVALID,
       FIELD(ranges) + 2 * sizeof(ptkit_range)},
      {"range that ends before it begins",
       [](auto& c) {
         c.range_count = 1;
         c.ranges[0] = {0x2000, 0x1000, PTKIT_RANGE_FILTER, 0};
       },
       PT_E_INVALID, FIELD(ranges)},
      {"output", [](auto& c) { c.output = 3; }, PT_E_INVALID, FIELD(output)},
      {"mode", [](auto& c) { c.mode = 2; }, PT_E_INVALID, FIELD(mode)},
      {"no buffer", [](auto& c) { c.buffer_bytes = 0; }, PT_E_INVALID, FIELD(buffer_bytes)},
      {"part of a page", [](auto& c) { c.buffer_bytes += 8; }, PT_E_INVALID, FIELD(buffer_bytes)},
      {"large buffer", [](auto& c) { c.buffer_bytes = 1ULL << 40; }, PT_E_INVALID, FIELD(buffer_bytes)},
      {"single range that is full", [](auto& c) { c.output = PTKIT_OUTPUT_SINGLE_RANGE; }, PT_E_INVALID,
       FIELD(mode)},
      {"large single range",
       [](auto& c) {
         c.output = PTKIT_OUTPUT_SINGLE_RANGE;
         c.mode = PTKIT_MODE_RING;
         c.buffer_bytes = 1 << 23;
       },
       PT_E_UNSUPPORTED, FIELD(buffer_bytes)},
      {"single range of three pages",
       [](auto& c) {
         c.output = PTKIT_OUTPUT_SINGLE_RANGE;
         c.mode = PTKIT_MODE_RING;
         c.buffer_bytes = 3 * 4096;
       },
       PT_E_INVALID, FIELD(buffer_bytes)},
      {"wake-up of half a page", [](auto& c) { c.wake_up_bytes = 2048; }, PT_E_INVALID, FIELD(wake_up_bytes)},
      {"wake-up of half the buffer", [](auto& c) { c.wake_up_bytes = c.buffer_bytes / 2; }, PT_E_INVALID,
       FIELD(wake_up_bytes)},
      {"sideband of no power of two", [](auto& c) { c.sideband_bytes = 3 * 4096; }, PT_E_INVALID,
       FIELD(sideband_bytes)},
      {"packets of Branch Trace Store",
       [](auto& c) {
         c.output = PTKIT_OUTPUT_BTS;
         c.flags |= PTKIT_TRACE_TSC;
       },
       PT_E_INVALID, FIELD(flags)},
      {"ranges of Branch Trace Store",
       [](auto& c) {
         c.output = PTKIT_OUTPUT_BTS;
         c.range_count = 1;
       },
       PT_E_INVALID, FIELD(range_count)},
  };
  return list;
}

TEST(PtConfig, RefusesFieldsByName) {
  for (const Refusal& refusal : refusals()) {
    ptkit_config config = usual_config();
    refusal.change(config);
    const Made made = make(config);
    EXPECT_EQ(made.error, refusal.error) << refusal.name;
    EXPECT_EQ(made.refused, refusal.field) << refusal.name;
  }
}

TEST(PtConfig, WhatTheProcessorLacksIsUnsupported) {
  pt_caps caps = every_capability();
  caps.leaf_14_ebx = 0;
  ptkit_config config = usual_config();
  EXPECT_EQ(make(config, false, caps).error, 0);
  EXPECT_EQ(make(config, true, caps).error, PT_E_UNSUPPORTED);
  EXPECT_EQ(make(config, true, caps).refused, FIELD(process));
  config.flags |= PTKIT_TRACE_PTWRITE;
  EXPECT_EQ(make(config, false, caps).error, PT_E_UNSUPPORTED);
  EXPECT_EQ(make(config, false, caps).refused, FIELD(flags));
}

TEST(PtConfig, WhatTheDriverLacksIsUnsupported) {
  pt_config_limits limits = every_feature();
  limits.features = 0;
  ptkit_config config = usual_config();
  config.wake_up_bytes = 4096;
  EXPECT_EQ(make(config, false, every_capability(), limits).refused, FIELD(wake_up_bytes));
  config.wake_up_bytes = 0;
  config.sideband_bytes = 4096;
  EXPECT_EQ(make(config, false, every_capability(), limits).refused, FIELD(sideband_bytes));
  config.sideband_bytes = 0;
  config.output = PTKIT_OUTPUT_BTS;
  EXPECT_EQ(make(config, false, every_capability(), limits).refused, FIELD(output));
  limits.features = PTKIT_FEATURE_BTS;
  limits.bts_levels = false;
  EXPECT_EQ(make(config, false, every_capability(), limits).error, PT_E_UNSUPPORTED);
}

TEST(PtConfig, ErrataAreOfModels) {
  EXPECT_TRUE(pt_needs_branch_en(0x306d4));
  EXPECT_FALSE(pt_needs_branch_en(0x906e9));
  EXPECT_FALSE(pt_single_range_is_limited(0x906e9));  // Kaby Lake
  EXPECT_TRUE(pt_single_range_is_limited(0x806c1));   // Tiger Lake
  EXPECT_TRUE(pt_single_range_is_limited(0xb06a2));   // Raptor Lake
}

}  // namespace
