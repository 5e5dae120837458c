// Values of files in messages.
#include <gtest/gtest.h>

#include "base/shortened.h"

namespace ptkit::base {
namespace {

TEST(Shortened, CutsLongValuesOnly) {
  EXPECT_EQ(shortened("intel-pt"), "intel-pt");
  EXPECT_EQ(shortened(std::string(100, 'a')), std::string(100, 'a'));
  EXPECT_EQ(shortened(std::string(50'000, 'a')), std::string(100, 'a') + "...");
}

TEST(Shortened, CutsNoCharacter) {
  const std::string two = std::string(99, 'a') + "\xc3\xa9\xc3\xa9";
  EXPECT_EQ(shortened(two), std::string(99, 'a') + "...");
  EXPECT_EQ(shortened(std::string(200, '\xbf')).size(), 97U + 3U);  // no UTF-8 at all
}

TEST(ShortenedMessage, KeepsSentencesAndCutsWordsInThem) {
  const std::string path = "/srv/" + std::string(200, 'p');
  EXPECT_EQ(shortened_message(path + ": is no trace"), path + ": is no trace");
  EXPECT_EQ(shortened_message("type " + std::string(50'000, 't') + " is unknown"),
            "type " + std::string(100, 't') + "... is unknown");
}

TEST(ShortenedMessage, BoundsWordsThatAreMany) {
  std::string words;
  for (int i = 0; i < 50'000; ++i) words += "w ";
  EXPECT_EQ(shortened_message(words).size(), 2000U + 3U);
  EXPECT_EQ(shortened_message(""), "");
}

}  // namespace
}  // namespace ptkit::base
