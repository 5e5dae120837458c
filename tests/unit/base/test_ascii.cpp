#include <gtest/gtest.h>

#include "base/ascii.h"

namespace ptkit::base {
namespace {

// What the compiler computes depends on no locale: in Turkish ones std::tolower('I') is 'I'.
static_assert(ascii_lower('I') == 'i' && ascii_upper('i') == 'I');

TEST(Ascii, ChangesLettersOfAsciiOnly) {
  for (int code = 0; code < 256; ++code) {
    const auto letter = static_cast<char>(code);
    const bool is_upper = code >= 'A' && code <= 'Z';
    const bool is_lower = code >= 'a' && code <= 'z';
    EXPECT_EQ(ascii_lower(letter), static_cast<char>(is_upper ? code + 32 : code)) << code;
    EXPECT_EQ(ascii_upper(letter), static_cast<char>(is_lower ? code - 32 : code)) << code;
  }
}

TEST(Ascii, ChangesEachLetterOfTexts) {
  EXPECT_EQ(ascii_lower("C:\\WINDOWS\\\xc3\x96zil_[1].DLL"), "c:\\windows\\\xc3\x96zil_[1].dll");
  EXPECT_EQ(ascii_upper("3f2504e0-1a"), "3F2504E0-1A");
  EXPECT_EQ(ascii_lower("SMI: INIT"), "smi: init");
  EXPECT_EQ(ascii_lower(""), "");
}

}  // namespace
}  // namespace ptkit::base
