#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <string>

#include "capture/windows/descriptions.h"
#include "capture/windows/requests.h"

namespace ptkit::capture {
namespace {

TEST(WindowsWords, HasASentenceForEachReason) {
  std::set<std::string> seen;
  const std::string unknown = reason_text(1000);
  for (std::uint32_t reason = PTKIT_REASON_NONE + 1; reason <= PTKIT_REASON_DENIED; ++reason) {
    EXPECT_NE(reason_text(reason), unknown) << reason;
    EXPECT_TRUE(seen.insert(reason_text(reason)).second) << reason;
  }
}

TEST(WindowsWords, SaysWhetherRecordingWorks) {
  ptkit_windows_query query{};
  EXPECT_EQ(recording_text(query), "recording:  possible");
  query.system = PTKIT_SYSTEM_HYPERVISOR;
  EXPECT_NE(recording_text(query).find("not certain"), std::string::npos);
  query.reason = PTKIT_REASON_VBS;
  EXPECT_EQ(recording_text(query), std::string("recording:  impossible: ") + reason_text(query.reason));
}

TEST(WindowsWords, NamesTheOptionOfEachField) {
  EXPECT_STREQ(field_text(offsetof(ptkit_config, mtc_freq)), "--mtc-period");
  EXPECT_STREQ(field_text(offsetof(ptkit_config, ranges) + 9), "--filter");
  EXPECT_STREQ(field_text(offsetof(ptkit_windows_config, affinity) + 8), "-C");
  EXPECT_STREQ(field_text(offsetof(ptkit_windows_config, module)), "the driver's name");
  EXPECT_STREQ(field_text(1), "the configuration");
}

TEST(WindowsWords, HasWordsForEachBitOnce) {
  for (const auto all : {feature_descriptions(), system_descriptions()}) {
    std::uint64_t bits = 0;
    for (const Description& one : all) {
      EXPECT_EQ(bits & one.code, 0U) << one.text;
      bits |= one.code;
    }
    EXPECT_NE(bits, 0U);
  }
}

}  // namespace
}  // namespace ptkit::capture
