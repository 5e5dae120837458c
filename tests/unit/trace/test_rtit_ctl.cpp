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

TEST(RtitCtl, SaysWhetherRangesAreUsed) {
  constexpr std::uint64_t kOther = std::uint64_t{1} << 55U | std::uint64_t{1} << 56U | kMtcEn;  // DisTNT
  EXPECT_TRUE(uses_no_range(kOther));
  for (const unsigned range : {0U, 1U, 2U, 3U})
    EXPECT_FALSE(uses_no_range(kOther | std::uint64_t{1} << (32 + 4 * range)));
}

}  // namespace
}  // namespace ptkit::trace
