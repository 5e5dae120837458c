#include <gtest/gtest.h>

#include <algorithm>

#include "trace/build_id.h"

namespace ptkit::trace {
namespace {

const std::string kLong = "572ac72487ae1966aabbccddeeff00112233445f";

std::string padded(std::string id) {
  id.resize(40, '0');
  return id;
}

TEST(BuildId, WithALengthIsThatOfOneFile) {
  for (const std::size_t digits : {16U, 32U, 40U}) {
    const BuildId id(kLong.substr(0, digits), false);
    EXPECT_TRUE(id.is_of(kLong.substr(0, digits)));
    EXPECT_EQ(id.is_of(padded(kLong.substr(0, digits)) + "00"), digits == 40);
    EXPECT_FALSE(id.is_of(kLong.substr(0, digits - 2)));
    EXPECT_EQ(id.candidates(), std::vector{kLong.substr(0, digits)});
  }
}

TEST(BuildId, WithoutALengthIsAFilesIdFollowedByZeros) {
  for (const std::size_t digits : {16U, 32U, 40U}) {
    SCOPED_TRACE(digits);
    const std::string id = kLong.substr(0, digits);
    const BuildId recorded(padded(id), true);
    EXPECT_EQ(recorded.text, id);
    EXPECT_TRUE(recorded.is_of(id));
    EXPECT_TRUE(recorded.is_of(padded(id)));
    EXPECT_FALSE(recorded.is_of(id.substr(0, digits - 2)));
    EXPECT_FALSE(recorded.is_of(id.substr(0, digits - 2) + "77"));
    EXPECT_EQ(recorded.is_of(padded(id) + "00"), digits == 40);
    const auto all = recorded.candidates();
    EXPECT_EQ(all.front(), id);
    EXPECT_NE(std::ranges::find(all, padded(id)), all.end());
  }
}

// perf records 20 bytes of a SHA-256 sum.
TEST(BuildId, OfTwentyBytesMayBeTheBeginOfALongerOne) {
  const std::string sum = kLong + "aabbccddeeff001122334455";
  for (const bool is_padded : {false, true}) {
    EXPECT_TRUE(BuildId(kLong, is_padded).is_of(sum));
    EXPECT_FALSE(BuildId(kLong.substr(0, 32), is_padded).is_of(sum));
    EXPECT_FALSE(BuildId(kLong, is_padded).is_of("00" + sum));
  }
}

// The file's id ends with zeros itself.
TEST(BuildId, KeepsZerosOfTheFile) {
  const BuildId recorded(padded("572ac700"), true);
  EXPECT_EQ(recorded.text, "572ac70000000000");
  for (const char* const id : {"572ac7", "572ac700", "572ac70000000000"}) EXPECT_TRUE(recorded.is_of(id));
  EXPECT_FALSE(recorded.is_of("572a"));
  EXPECT_FALSE(recorded.is_of("572ac71000000000"));
}

TEST(BuildId, OfZerosIsNone) {
  for (const bool is_padded : {false, true}) {
    const BuildId zeros(padded(""), is_padded);
    EXPECT_TRUE(zeros.empty());
    EXPECT_TRUE(zeros.candidates().empty());
    EXPECT_FALSE(zeros.is_of(padded("")));
    EXPECT_FALSE(zeros.is_of(""));
    EXPECT_FALSE(BuildId(kLong, is_padded).is_of(padded("")));
    EXPECT_FALSE(BuildId(kLong, is_padded).is_of(""));
  }
}

}  // namespace
}  // namespace ptkit::trace
