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
ptkit_caps every_capability() {
  ptkit_caps caps = {};
  caps.cpuid_1_eax = 0x906e9;
  caps.cpuid_7_ebx = 1U << PT_CPUID_7_EBX_PT;
  caps.cpuid_14_0[1] = 0x1ff;
  caps.cpuid_14_0[2] = 0x7;
  caps.cpuid_14_1[0] = 0xffff0004;
  caps.cpuid_14_1[1] = 0xffffffff;
  caps.physical_bits = 46;
  caps.linear_bits = 48;
  caps.in_vmx = caps.interrupts = caps.bts = caps.bts_levels = true;
  return caps;
}

pt_config_limits every_feature() {
  return {.features = ~std::uint64_t{0}, .most_bytes = 1 << 30, .most_single_bytes = 1 << 22};
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

Made make(ptkit_config config, bool cr3_filter = false, const ptkit_caps& caps = every_capability(),
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
  ptkit_caps caps = every_capability();
  caps.cpuid_14_0[1] = 0;
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
}

TEST(PtConfig, BranchTraceStoreOfOneLevelNeedsTheProcessor) {
  ptkit_caps caps = every_capability();
  ptkit_config config = usual_config();
  config.output = PTKIT_OUTPUT_BTS;
  EXPECT_EQ(make(config, false, caps).error, 0);
  caps.bts_levels = false;
  EXPECT_EQ(make(config, false, caps).error, PT_E_UNSUPPORTED);
  EXPECT_EQ(make(config, false, caps).refused, FIELD(flags));
  config.flags |= PTKIT_TRACE_KERNEL;
  EXPECT_EQ(make(config, false, caps).error, 0);
}

// Erratum BDM106 is in a rule of the registers.
TEST(PtConfig, BroadwellTracesBranchesAlways) {
  ptkit_caps caps = every_capability();
  ptkit_config config = usual_config();
  config.flags &= ~std::uint64_t{PTKIT_TRACE_BRANCHES};
  EXPECT_EQ(make(config, false, caps).error, 0);
  caps.cpuid_1_eax = 0x306d4;
  EXPECT_EQ(make(config, false, caps).refused, FIELD(flags));
}

std::uint64_t features_of(const ptkit_caps& caps) {
  pt_config_limits limits = {};
  pt_limits_make(&caps, 1 << 30, &limits);
  EXPECT_EQ(limits.most_bytes, 1U << 30);
  return limits.features;
}

TEST(PtLimits, FeaturesAreWhatTheProcessorHas) {
  EXPECT_EQ(features_of({}), 0U);
  EXPECT_EQ(features_of(every_capability()), PTKIT_FEATURE_TOPA | PTKIT_FEATURE_WAKE_UP |
                                                 PTKIT_FEATURE_SINGLE_RANGE | PTKIT_FEATURE_BTS |
                                                 PTKIT_FEATURE_VMX);
  ptkit_caps caps = every_capability();
  caps.interrupts = false;
  EXPECT_EQ(features_of(every_capability()) & ~features_of(caps), PTKIT_FEATURE_WAKE_UP);
  caps = every_capability();
  caps.cpuid_14_0[2] &= ~(1U << PT_CPUID_14_ECX_TOPA_MULTIPLE);
  EXPECT_EQ(features_of(every_capability()) & ~features_of(caps), PTKIT_FEATURE_WAKE_UP);
  caps.cpuid_14_0[2] = 1U << PT_CPUID_14_ECX_TOPA_MULTIPLE;
  EXPECT_EQ(features_of(caps), PTKIT_FEATURE_BTS | PTKIT_FEATURE_VMX);
}

TEST(PtLimits, ErrataLimitSingleRanges) {
  ptkit_caps caps = every_capability();
  pt_config_limits limits = {};
  pt_limits_make(&caps, 1 << 30, &limits);
  EXPECT_EQ(limits.most_single_bytes, 1U << 30);
  caps.cpuid_1_eax = 0x806c1;
  pt_limits_make(&caps, 1 << 30, &limits);
  EXPECT_EQ(limits.most_single_bytes, 4096U);
}

TEST(PtQuery, HasWordsOfCpuidAndLimits) {
  ptkit_caps caps = every_capability();
  for (std::uint32_t i = 0; i < 4; ++i) {
    caps.cpuid_14_0[i] = 0x10 + i;
    caps.cpuid_14_1[i] = 0x20 + i;
    caps.cpuid_15[i] = 0x30 + i;
  }
  caps.nominal_ratio = 36;
  const pt_config_limits limits = {.features = 5, .most_bytes = 1 << 30, .most_single_bytes = 1 << 22};
  ptkit_query query = {};
  query.tsc_khz = 7;
  pt_query_make(&caps, &limits, &query);
  EXPECT_EQ(query.abi, static_cast<std::uint32_t>(PTKIT_ABI));
  EXPECT_EQ(query.driver_version, 0x100U);
  EXPECT_EQ(query.features, 5U);
  EXPECT_EQ(query.cpuid_1_eax, 0x906e9U);
  EXPECT_EQ(query.cpuid_7_ebx, caps.cpuid_7_ebx);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(query.cpuid_14_0[i], 0x10 + i);
    EXPECT_EQ(query.cpuid_14_1[i], 0x20 + i);
    EXPECT_EQ(query.cpuid_15[i], 0x30 + i);
  }
  EXPECT_EQ(query.physical_bits, 46U);
  EXPECT_EQ(query.nominal_ratio, 36U);
  EXPECT_EQ(query.most_bytes, 1U << 30);
  EXPECT_EQ(query.most_single_bytes, 1U << 22);
  EXPECT_EQ(query.tsc_khz, 7U);  // the driver's
}

pt_topa_options options_of(const ptkit_config& config, const ptkit_caps& caps = every_capability()) {
  pt_topa_options options = {};
  pt_topa_options_make(&caps, &config, &options);
  return options;
}

TEST(PtTopaOptions, FollowModeAndProcessor) {
  ptkit_config config = usual_config();
  ptkit_caps caps = every_capability();
  pt_topa_options options = options_of(config);
  EXPECT_FALSE(options.ring);
  EXPECT_FALSE(options.one_entry);
  EXPECT_EQ(options.interrupt_bytes, 0U);
  EXPECT_EQ(options.largest_size, PT_TOPA_LARGEST_SIZE);
  EXPECT_EQ(options.physical_bits, 46);
  config.mode = PTKIT_MODE_RING;
  caps.cpuid_14_0[2] &= ~(1U << PT_CPUID_14_ECX_TOPA_MULTIPLE);
  options = options_of(config, caps);
  EXPECT_TRUE(options.ring);
  EXPECT_TRUE(options.one_entry);
}

TEST(PtTopaOptions, RegionsAreNoLongerThanHalfAWakeUp) {
  ptkit_config config = usual_config();
  config.wake_up_bytes = 1 << 16;
  const pt_topa_options options = options_of(config);
  EXPECT_TRUE(options.ring);
  EXPECT_EQ(options.interrupt_bytes, 1U << 15);
  EXPECT_EQ(PT_TOPA_LEAST_BYTES << options.largest_size, 1U << 15);
  config.wake_up_bytes = 4096;
  EXPECT_EQ(options_of(config).interrupt_bytes, 4096U);
  EXPECT_EQ(options_of(config).largest_size, 0);
}

TEST(PtConfig, ErrataAreOfModels) {
  EXPECT_TRUE(pt_needs_branch_en(0x306d4));
  EXPECT_FALSE(pt_needs_branch_en(0x906e9));
  EXPECT_FALSE(pt_single_range_is_limited(0x906e9));  // Kaby Lake
  EXPECT_TRUE(pt_single_range_is_limited(0x806c1));   // Tiger Lake
  EXPECT_TRUE(pt_single_range_is_limited(0xb06a2));   // Raptor Lake
}

}  // namespace
