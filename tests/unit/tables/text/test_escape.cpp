// Names of recordings in lines: as Python's one_line() and json.dumps() write them.
#include <gtest/gtest.h>

#include "tables/text/escape.h"

namespace ptkit::tables::text {
namespace {

TEST(Escape, ShowsControlCharactersOnATerminal) {
  EXPECT_EQ(for_terminal("main"), "main");
  EXPECT_EQ(for_terminal("a\x1b[2Jb\n\x7f"), "a\\x1b[2Jb\\x0a\\x7f");
  EXPECT_EQ(for_terminal("\xc2\x9b"), "\\x9b");                           // U+009B begins commands, too
  EXPECT_EQ(for_terminal("\xe2\x80\xa8\xe2\x80\xa9"), "\\u2028\\u2029");  // ends of lines
  EXPECT_EQ(for_terminal("h\xc3\xa9 \xf0\x9f\x98\x80"), "h\xc3\xa9 \xf0\x9f\x98\x80");
}

TEST(Escape, WritesJsonInAscii) {
  EXPECT_EQ(for_json("main"), "\"main\"");
  EXPECT_EQ(for_json("a\"b\\c\n\t\r\b\f\x01\x7f"), R"("a\"b\\c\n\t\r\b\f\u0001\u007f")");
  EXPECT_EQ(for_json("h\xc3\xa9 \xe2\x80\xa8"), R"("h\u00e9 \u2028")");
  EXPECT_EQ(for_json("\xf0\x9f\x98\x80"), R"("\ud83d\ude00")");
}

TEST(Escape, TakesBytesThatAreNotUtf8) {
  // A lone continuation, an overlong form, a surrogate, a character beyond the last one, and a cut one.
  for (const auto* bytes : {"\x80", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x80"}) {
    const std::string text = std::string("a") + bytes;
    EXPECT_EQ(for_terminal(text).find_first_of('\\'), 1U);
    EXPECT_EQ(for_json(text).find("\\udc"), 2U);
    for (const char letter : for_terminal(text) + for_json(text))
      EXPECT_LT(static_cast<unsigned char>(letter), 0x80);
  }
  EXPECT_EQ(for_terminal("\xff"), "\\xff");
  EXPECT_EQ(for_json("\xff"), "\"\\udcff\"");
}

}  // namespace
}  // namespace ptkit::tables::text
