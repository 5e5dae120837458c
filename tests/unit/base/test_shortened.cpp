// Values of files in messages.
#include <gtest/gtest.h>

#include "base/shortened.h"

namespace ptkit::base {
namespace {

std::string letters(std::size_t count, std::string_view end = {}) {
  std::string text;
  while (text.size() < count) text.push_back('a');
  return text.append(end);
}

TEST(Shortened, CutsLongValuesOnly) {
  EXPECT_EQ(shortened("intel-pt"), "intel-pt");
  EXPECT_EQ(shortened(letters(100)), letters(100));
  EXPECT_EQ(shortened(letters(50'000)), letters(100, "..."));
}

TEST(Shortened, CutsNoCharacter) {
  EXPECT_EQ(shortened(letters(99, "\xc3\xa9\xc3\xa9")), letters(99, "..."));
  EXPECT_EQ(shortened(std::string(200, '\xbf')).size(), 97U + 3U);  // no UTF-8 at all
}

TEST(ShortenedMessage, KeepsSentencesAndCutsWordsInThem) {
  const std::string sentence = letters(200, ": is no trace");
  EXPECT_EQ(shortened_message(sentence), sentence);
  EXPECT_EQ(shortened_message(letters(50'000, " is unknown")), letters(100, "... is unknown"));
}

TEST(ShortenedMessage, BoundsWordsThatAreMany) {
  std::string words;
  for (int i = 0; i < 50'000; ++i) words += "w ";
  EXPECT_EQ(shortened_message(words).size(), 2000U + 3U);
  EXPECT_EQ(shortened_message(""), "");
}

}  // namespace
}  // namespace ptkit::base
