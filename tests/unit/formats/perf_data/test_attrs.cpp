// perf.data: AUXTRACE_INFO of several perf versions, and TIME_CONV, in any order.
#include <gtest/gtest.h>

#include "unit/support/makers/perf_sample.h"
#include "unit/support/traces/perf_reading.h"

namespace ptkit::formats {
namespace {

using test::kEach;
using test::time_conversion;

class PerfConfig : public test::PerfReading {
 protected:
  trace::Configuration of(const std::string& records) {
    return read(test::perf_file(records + test::auxtrace(0, kEach, 0, 0, test::small_stream()) +
                                test::switched({.tsc = 200}, false)))
        .configuration;
  }
};

constexpr std::uint64_t kMask = 0xffff'ffff;

// perf writes TIME_CONV before AUXTRACE_INFO.
TEST_F(PerfConfig, ReadsTimeConvBeforeAuxtraceInfo) {
  const std::string conversion = time_conversion(90, kMask, true);
  for (const std::string& records :
       {conversion + test::auxtrace_info(), test::auxtrace_info() + conversion}) {
    const trace::Clock clock = of(records).clock;
    EXPECT_TRUE(clock.perf_time_known);
    EXPECT_EQ(clock.time_cycles, 90U);
    EXPECT_EQ(clock.time_mask, kMask);
    EXPECT_EQ(clock.tsc_ctc_numerator, 84U);
  }
}

TEST_F(PerfConfig, TakesTheClockFromTimeConvOrAuxtraceInfo) {
  std::string without = test::auxtrace_info();
  without[48] = 0;  // cap_user_time_zero
  EXPECT_FALSE(of(without).clock.perf_time_known);
  for (const std::string& records : {time_conversion() + without, without + time_conversion()}) {
    const trace::Clock clock = of(records).clock;
    EXPECT_TRUE(clock.perf_time_known);
    EXPECT_EQ(clock.tsc_hz, 2'000'000'000U);
  }
  // If both have it, AUXTRACE_INFO's is used.
  std::string other = time_conversion();
  other[16] = 1;
  EXPECT_EQ(of(other + test::auxtrace_info()).clock.time_mult, 512U);
}

// A filter that was cut off is not the same as none.
TEST_F(PerfConfig, KnowsWhetherThereIsAFilter) {
  std::string info = test::auxtrace_info();
  EXPECT_TRUE(of(info).ranges_known);
  info[info.size() - 8] = 16;  // bytes of the filter, which would follow
  EXPECT_FALSE(of(info).ranges_known);
}

struct Caps {
  const char* pmu;
  std::vector<std::pair<const char*, const char*>> caps;
};

std::string pmu_caps(const std::vector<Caps>& pmus) {
  std::string out = test::Bytes().add(static_cast<std::uint32_t>(pmus.size())).str();
  for (const Caps& one : pmus) {
    out += test::Bytes().add(static_cast<std::uint32_t>(one.caps.size())).str();
    for (const auto& [name, value] : one.caps) out += test::text_feature(name) + test::text_feature(value);
    out += test::text_feature(one.pmu);
  }
  return out;
}

TEST_F(PerfConfig, ReadsIpPayloadsFromPmuCaps) {
  using trace::IpPayloads;
  const std::string records = test::auxtrace_info() + test::auxtrace(0, kEach, 0, 0, test::small_stream()) +
                              test::switched({.tsc = 200}, false);
  const auto found = [&](const std::string& feature) {
    return read(test::perf_file({{}}, records, {{9, test::kCpuid}, {31, feature}})).configuration.ip_payloads;
  };
  const Caps other{"cpu_atom", {{"branches", "32"}, {"payloads_lip", "1"}}};
  const Caps linear{"intel_pt", {{"mtc", "1"}, {"payloads_lip", "1"}, {"psb_cyc", "1"}}};
  const Caps effective{"intel_pt", {{"payloads_lip", "0"}, {"mtc", "1"}}};
  EXPECT_EQ(found(pmu_caps({other, linear})), IpPayloads::LINEAR);
  EXPECT_EQ(found(pmu_caps({effective, other})), IpPayloads::EFFECTIVE);
  EXPECT_EQ(found(pmu_caps({other})), IpPayloads::UNKNOWN);
  EXPECT_EQ(found(pmu_caps({{"intel_pt", {{"mtc", "1"}}}})), IpPayloads::UNKNOWN);
  EXPECT_EQ(found(pmu_caps({{"intel_pt", {{"payloads_lip", "2"}}}})), IpPayloads::UNKNOWN);
  EXPECT_EQ(of(test::auxtrace_info()).ip_payloads, IpPayloads::UNKNOWN);
  const std::string whole = pmu_caps({other, linear});
  for (std::size_t size = 0; size < whole.size() - 64; ++size)
    EXPECT_EQ(found(whole.substr(0, size)), IpPayloads::UNKNOWN) << size;
  EXPECT_EQ(found("\xff\xff\xff\xff\xff\xff\xff\xff"), IpPayloads::UNKNOWN);
}

// Newer versions of perf appended fields.
TEST_F(PerfConfig, ReadsAuxtraceInfoOfOlderPerf) {
  const auto ends_at = [](std::size_t last) {
    const std::string body = test::auxtrace_info().substr(8, 8 + 8 * (last + 1));
    return test::record(70, 0, body);
  };
  for (const std::size_t last : {9U, 10U, 11U, 13U, 15U, 16U}) {
    SCOPED_TRACE(last);
    const trace::Configuration found = of(ends_at(last));
    EXPECT_TRUE(found.clock.perf_time_known);
    EXPECT_EQ(found.clock.tsc_hz, 2'000'000'000U);
    EXPECT_EQ(found.rtit_ctl, 0xe709U);
    EXPECT_EQ(found.clock.mtc_period_known, last >= 11);
    EXPECT_EQ(found.clock.mtc_period, last >= 11 ? 3 : 0);
    EXPECT_EQ(found.clock.tsc_ctc_numerator, last >= 12 ? 84U : 0U);
    EXPECT_EQ(found.clock.tsc_ctc_denominator, last >= 13 ? 2U : 0U);
    EXPECT_EQ(found.clock.max_nonturbo_ratio, last >= 15 ? 24 : 0);
  }
  EXPECT_NE(failure(test::perf_file(ends_at(7))).find("cut AUXTRACE_INFO record"), std::string::npos);
}

}  // namespace
}  // namespace ptkit::formats
