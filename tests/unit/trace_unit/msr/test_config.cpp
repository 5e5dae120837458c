#include <gtest/gtest.h>

#include <random>

#include "trace_unit/msr/config.h"
#include "unit/support/units/random_state.h"

namespace ptkit::trace_unit::msr {
namespace {

RtitConfig plain() {
  RtitConfig config;
  config.user = config.branch_en = config.topa = true;
  config.output_base = 0x10000;
  return config;
}

TEST(RegisterValues, RoundTrip) {
  std::mt19937_64 random(1);
  for (int turn = 0; turn < 2000; ++turn) {
    const RegisterValues values = tests::random_values(random, {});
    const RtitConfig config = config_of(values);
    RegisterValues kept = values;
    kept.ctl &= 0x0180'ffff'8f7b'ffffULL;
    EXPECT_EQ(values_of(config), kept);
  }
  RtitConfig config = plain();
  config.addr1_cfg = 2;
  config.addr[1] = {0x1000, 0x2000};
  EXPECT_EQ(values_of(config).ctl, 0x20'0000'2108ULL);
  EXPECT_EQ(values_of(config).addr[3], 0x2000U);
}

// For each rule: a configuration that violates only this rule, and the corrected configuration.
struct Case {
  const char* field;
  std::uint32_t msr;
  Effect effect;
  void (*spoil)(RtitConfig&, Capabilities&);
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.field; }

class ConfigRules : public testing::TestWithParam<Case> {};

constexpr auto kFault = Effect::FAULT;
constexpr auto kError = Effect::ERROR;
constexpr auto kNothing = Effect::NOTHING;
constexpr auto kUntraced = Effect::UNTRACED;

TEST_P(ConfigRules, AreViolatedOneByOne) {
  RtitConfig config = plain();
  Capabilities capabilities;
  ASSERT_TRUE(check(config, capabilities).empty());
  GetParam().spoil(config, capabilities);
  const auto violations = check(config, capabilities);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].field, GetParam().field);
  EXPECT_EQ(violations[0].msr, GetParam().msr);
  EXPECT_EQ(violations[0].effect, GetParam().effect);
  EXPECT_FALSE(violations[0].rule.empty());
  EXPECT_FALSE(violations[0].section.empty());
  EXPECT_EQ(accepted(violations), GetParam().effect == kNothing || GetParam().effect == kUntraced);
}

#define SPOIL(...)                     \
  [](RtitConfig& c, Capabilities& k) { \
    static_cast<void>(c);              \
    static_cast<void>(k);              \
    __VA_ARGS__;                       \
  }
const Case kCases[] = {
    {"CYCEn", 0x570, kFault, SPOIL(c.cyc_en = true; k.leaf_14_ebx &= ~2U)},
    {"PwrEvtEn", 0x570, kFault, SPOIL(c.pwr_evt_en = true; k.leaf_14_ebx &= ~0x20U)},
    {"PTWEn", 0x570, kFault, SPOIL(c.ptw_en = true; k.leaf_14_ebx &= ~0x10U)},
    {"FabricEn", 0x570, kFault, SPOIL(c.fabric_en = true; c.topa = false; k.leaf_14_ecx &= ~8U)},
    {"CR3Filter", 0x570, kFault, SPOIL(c.cr3_filter = true; k.leaf_14_ebx &= ~1U)},
    {"ToPA", 0x570, kFault, SPOIL(k.leaf_14_ecx &= ~1U)},
    {"ToPA", 0x570, kFault, SPOIL(c.topa = false; k.leaf_14_ecx &= ~4U)},
    {"MTCEn", 0x570, kFault, SPOIL(c.mtc_en = true; k.leaf_14_ebx &= ~8U)},
    {"BranchEn", 0x570, kFault, SPOIL(c.branch_en = false; k.needs_branch_en = true)},
    {"MTCFreq", 0x570, kFault, SPOIL(c.mtc_en = true; c.mtc_freq = 4; k.leaf_14_1_eax &= ~(1U << 20))},
    {"MTCFreq", 0x570, kFault, SPOIL(c.mtc_en = true; k.leaf_14_1_eax &= ~(1U << 16))},
    {"CycThresh", 0x570, kFault, SPOIL(c.cyc_en = true; c.cyc_thresh = 15; k.leaf_14_1_ebx &= ~(1U << 15))},
    {"PSBFreq", 0x570, kFault, SPOIL(c.psb_freq = 6; k.leaf_14_1_ebx &= ~(1U << 22))},
    {"PSBFreq", 0x570, kFault, SPOIL(c.psb_freq = 6; k.leaf_14_ebx &= ~2U)},
    {"PSBFreq", 0x570, kFault, SPOIL(c.psb_freq = 16)},
    {"EventEn", 0x570, kFault, SPOIL(c.event_en = true; k.leaf_14_ebx &= ~0x80U)},
    {"ADDR2_CFG", 0x570, kFault, SPOIL(c.addr2_cfg = 1; k.leaf_14_1_eax = (k.leaf_14_1_eax & ~7U) | 2)},
    {"ADDR0_CFG", 0x570, kFault, SPOIL(c.addr0_cfg = 1; k.leaf_14_ebx &= ~4U)},
    {"ADDR3_CFG", 0x570, kFault, SPOIL(c.addr3_cfg = 3)},
    {"DisTNT", 0x570, kFault, SPOIL(c.dis_tnt = true; k.leaf_14_ebx &= ~0x100U)},
    {"InjectPsbPmiOnEnable", 0x570, kFault,
     SPOIL(c.inject_psb_pmi_on_enable = true; k.leaf_14_ebx &= ~0x40U)},
    {"OS, User", 0x570, kUntraced, SPOIL(c.user = false)},
    {"FUPonPTW", 0x570, kNothing, SPOIL(c.fup_on_ptw = true)},
    {"MTCFreq", 0x570, kNothing, SPOIL(c.mtc_freq = 3)},
    {"CycThresh", 0x570, kNothing, SPOIL(c.cyc_thresh = 3)},
    {"ToPA", 0x570, kNothing, SPOIL(c.fabric_en = true; k.leaf_14_ecx |= 8U)},
    {"reserved", 0x571, kFault, SPOIL(c.status = 8)},
    {"reserved", 0x571, kFault, SPOIL(c.status = 1ULL << 49)},
    {"PendPSB", 0x571, kFault, SPOIL(c.status = 0x40; k.leaf_14_ebx &= ~0x40U)},
    {"PendTopaPMI", 0x571, kFault, SPOIL(c.status = 0x80; k.leaf_14_ebx &= ~0x40U)},
    {"PacketByteCnt", 0x571, kFault, SPOIL(c.status = 1ULL << 32; k.leaf_14_ebx &= ~2U)},
    {"Error, Stopped", 0x571, kUntraced, SPOIL(c.status = 0x20)},
    {"BasePhysAddr", 0x560, kFault, SPOIL(c.output_base |= 64)},
    {"BasePhysAddr", 0x560, kFault, SPOIL(c.output_base |= 1ULL << 46)},
    {"BasePhysAddr", 0x560, kError, SPOIL(c.output_base |= 0x800)},
    {"BasePhysAddr", 0x560, kError, SPOIL(c.topa = false; c.output_mask_ptrs = 0x1ffff)},
    {"MaskOrTableOffset", 0x561, kError, SPOIL(c.topa = false; c.output_mask_ptrs = 0xf7f)},
    {"OutputOffset", 0x561, kError, SPOIL(c.topa = false; c.output_mask_ptrs = 0x1000'0000'0fffULL)},
    {"CR3", 0x572, kFault, SPOIL(c.cr3_filter = true; c.cr3_match = 0x1010)},
    {"ADDR1_A", 0x582, kFault, SPOIL(c.addr1_cfg = 1; c.addr[1] = {1ULL << 47, ~0ULL})},
    {"ADDR1_B", 0x583, kFault, SPOIL(c.addr1_cfg = 1; c.addr[1] = {5, 1ULL << 47})},
    {"ADDR1_B", 0x583, kNothing, SPOIL(c.addr1_cfg = 2; c.addr[1] = {5, 4})},
    {"ADDR1_B", 0x583, kNothing, SPOIL(c.addr1_cfg = 2; c.addr[1] = {~0ULL - 5, ~0ULL})},
};
#undef SPOIL

INSTANTIATE_TEST_SUITE_P(All, ConfigRules, testing::ValuesIn(kCases));

TEST(ConfigCheck, NamesAllViolations) {
  RtitConfig config = plain();
  config.addr0_cfg = 7;
  config.mtc_freq = 200;
  config.status = 8;
  config.output_base |= 1;
  Capabilities capabilities;
  capabilities.leaf_14_ebx = 0;
  const auto violations = check(config, capabilities);
  std::string fields;
  for (const auto& violation : violations) fields += violation.field + " ";
  EXPECT_EQ(fields, "MTCFreq MTCFreq MTCFreq reserved BasePhysAddr ADDR0_CFG ADDR0_CFG ");
}

std::string effects_of(const RtitConfig& config) {
  std::string out;
  for (const auto& violation : check(config, {}))
    out += violation.field + (violation.effect == Effect::UNTRACED ? "! " : " ");
  return out;
}

TEST(ConfigCheck, SaysThatFiltersLeaveNothingToTrace) {
  RtitConfig config = plain();
  config.addr0_cfg = config.addr1_cfg = PT_ADDR_CFG_FILTER;
  config.addr[0] = {0x2000, 0x1000};
  config.addr[1] = {0xffff'8000'0000'0000, 0xffff'8000'0000'ffff};
  EXPECT_EQ(effects_of(config), "ADDR0_B ADDR1_B ADDR0_CFG to ADDR3_CFG! ");
  config.addr[0] = {0x1000, 0x2000};
  EXPECT_EQ(effects_of(config), "ADDR1_B ");
  config.os = true;
  EXPECT_EQ(effects_of(config), "");
}

TEST(ConfigCheck, ReservedBitsNeedRegisterValues) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    RegisterValues values = values_of(plain());
    values.ctl ^= std::uint64_t{1} << bit;
    bool reserved = false;
    for (const auto& violation : check(values, {})) reserved |= violation.field == "reserved";
    const bool expected =
        bit == 18 || bit == 23 || (bit >= 28 && bit <= 30) || (bit >= 48 && bit <= 54) || bit >= 57;
    EXPECT_EQ(reserved, expected) << bit;
  }
}

TEST(ConfigCheck, AcceptsAddressesOfFiveLevelPaging) {
  RtitConfig config = plain();
  config.addr0_cfg = 1;
  config.addr[0] = {1ULL << 50, (1ULL << 50) + 1};
  EXPECT_EQ(check(config, {}).size(), 2U);
  Capabilities capabilities;
  capabilities.linear_bits = 57;
  EXPECT_TRUE(check(config, capabilities).empty());
}

}  // namespace
}  // namespace ptkit::trace_unit::msr
