// Settings that follow from IA32_RTIT_CTL.
#include <gtest/gtest.h>

#include "trace/rtit_ctl.h"

namespace ptkit::trace {
namespace {

constexpr std::uint64_t kMtcEn = std::uint64_t{1} << 9U;
constexpr std::uint64_t kPtwEn = std::uint64_t{1} << 12U;
constexpr std::uint64_t kMtcFreq5 = std::uint64_t{5} << 14U;

TEST(RtitCtl, HasMtcPeriod) {
  Configuration configuration;
  set_rtit_ctl(configuration, kMtcFreq5);
  EXPECT_TRUE(configuration.rtit_ctl_known);
  EXPECT_FALSE(configuration.clock.mtc_period_known);  // no MTC packets
  set_rtit_ctl(configuration, kMtcEn | kMtcFreq5);
  EXPECT_TRUE(configuration.clock.mtc_period_known);
  EXPECT_EQ(configuration.clock.mtc_period, 5);
}

TEST(RtitCtl, SaysWhetherPtwPacketsAreTheProcessors) {
  Configuration configuration;
  EXPECT_FALSE(ptw_disabled(configuration));  // not known
  set_rtit_ctl(configuration, kPtwEn);
  EXPECT_FALSE(ptw_disabled(configuration));
  set_rtit_ctl(configuration, 0);
  EXPECT_TRUE(ptw_disabled(configuration));
}

}  // namespace
}  // namespace ptkit::trace
