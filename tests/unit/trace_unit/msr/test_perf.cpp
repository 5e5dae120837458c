#include <gtest/gtest.h>

#include <random>

#include "trace_unit/msr/perf.h"
#include "unit/support/units/random_state.h"

namespace ptkit::trace_unit::msr {
namespace {

TEST(PerfTerms, SetBitsOfCtl) {
  const auto event = parse_perf("intel_pt/tsc,mtc=1,mtc_period=3,noretcomp=0,psb_period=0x5/u");
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event.value().config, 1U << 10 | 1U << 9 | 3U << 14 | 5U << 24);
  EXPECT_TRUE(event.value().user);
  EXPECT_FALSE(event.value().kernel);
  EXPECT_EQ(perf_text(event.value()), "intel_pt/mtc,tsc,mtc_period=3,psb_period=5/u");
  const auto bare = parse_perf("pt,branch,event,notnt,ptw,fup_on_ptw,pwr_evt,cyc,cyc_thresh=2");
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ(bare.value().config, 1ULL | 1ULL << 13 | 1ULL << 31 | 1ULL << 55 | 1ULL << 12 | 1ULL << 5 |
                                     1ULL << 4 | 1ULL << 1 | 2ULL << 19);
  EXPECT_TRUE(bare.value().kernel);
  EXPECT_TRUE(parse_perf("intel_pt//").ok());
  EXPECT_TRUE(parse_perf("config=0x400").ok());
}

TEST(PerfTerms, InvalidTermsAreNamed) {
  const auto detail = [](std::string_view text) {
    const auto event = parse_perf(text);
    return event.ok() ? std::string() : event.failure().detail;
  };
  EXPECT_NE(detail("tsk").find("perf's term tsk"), std::string::npos);
  EXPECT_NE(detail("mtc_period=16").find("0 to 15"), std::string::npos);
  EXPECT_NE(detail("mtc_period=x").find("no number"), std::string::npos);
  EXPECT_NE(detail("mtc=").find("no number"), std::string::npos);
  EXPECT_NE(detail("intel_pt/tsc").find("second /"), std::string::npos);
  EXPECT_NE(detail("intel_pt/tsc/x").find("u and k"), std::string::npos);
  EXPECT_NE(detail("tsc,,mtc"), "");
}

TEST(PerfEventConfig, ConvertsToTheConfigOfPerf) {
  const auto made = config_of_perf({.config = 1U << 10, .user = true, .kernel = false});
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(made.value().branch_en);  // without "pt"
  EXPECT_TRUE(made.value().topa);
  EXPECT_FALSE(made.value().os);
  const auto without = config_of_perf({.config = 1, .user = true, .kernel = true});
  ASSERT_TRUE(without.ok());
  EXPECT_FALSE(without.value().branch_en);
  EXPECT_FALSE(config_of_perf({.config = 1U << 13}).ok());
  EXPECT_FALSE(config_of_perf({.config = 1U << 7}).ok());
}

TEST(PerfConfig, NamesFieldsThatPerfCannotSet) {
  RtitConfig config;
  config.user = config.branch_en = config.topa = config.tsc_en = true;
  EXPECT_TRUE(perf_of(config).lost.empty());
  EXPECT_EQ(perf_text(perf_of(config).event), "intel_pt/tsc/u");
  config.topa = false;
  config.cr3_filter = true;
  config.addr2_cfg = 1;
  EXPECT_EQ(perf_of(config).lost, (std::vector<std::string>{"CR3Filter", "ToPA", "ADDR2_CFG"}));
}

TEST(PerfConfig, RoundTripsThroughPerf) {
  std::mt19937_64 random(4);
  int same = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    RtitConfig config = config_of(tests::random_values(random, {}));
    config.trace_en = true;
    config.topa = true;
    if (turn % 2 == 0) {
      config.cr3_filter = config.fabric_en = config.inject_psb_pmi_on_enable = false;
      config.addr0_cfg = config.addr1_cfg = config.addr2_cfg = config.addr3_cfg = 0;
    }
    const PerfTranslation there = perf_of(config);
    const auto event = parse_perf(perf_text(there.event));
    ASSERT_TRUE(event.ok());
    EXPECT_EQ(event.value(), there.event);
    const auto back = config_of_perf(event.value());
    ASSERT_TRUE(back.ok());
    const bool equal = values_of(back.value()).ctl == values_of(config).ctl;
    EXPECT_EQ(equal, there.lost.empty());
    same += equal ? 1 : 0;
  }
  EXPECT_GT(same, 100);
}

}  // namespace
}  // namespace ptkit::trace_unit::msr
