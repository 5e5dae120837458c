// Patterns mean the same on each system.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/system/name_pattern.h"

namespace ptkit::base {
namespace {

struct Case {
  const char* pattern;
  const char* name;
  bool matches;
};

constexpr std::array kCases{
    Case{"", "", true},
    Case{"", "a", false},
    Case{"main", "main", true},
    Case{"main", "Main", false},
    Case{"*", "", true},
    Case{"*", "std::sort", true},
    Case{"mem*", "memcpy", true},
    Case{"*cpy", "memcpy", true},
    Case{"*cpy", "memcpy@plt", false},
    Case{"*a*b*c", "xaybzbc", true},
    Case{"*a*b*c", "xaybz", false},
    Case{"??", "ab", true},
    Case{"??", "abc", false},
    Case{"f[0-9]", "f7", true},
    Case{"f[0-9]", "fx", false},
    Case{"f[!0-9]", "fx", true},
    Case{"f[!0-9]", "f7", false},
    Case{"[]x]", "]", true},
    Case{"[a-]", "-", true},
    Case{"*[xyz]*", "abyc", true},
    Case{"operator[[]]", "operator[]", true},
    Case{"a[b", "a[b", true},
    Case{"\\*", "*", true},
    Case{"\\*", "a", false},
    Case{"[\\]]", "]", true},
    Case{"dir/*", "dir/a/b", true},
};

TEST(NamePattern, MatchesAsFnmatchDoes) {
  for (const Case& one : kCases)
    EXPECT_EQ(matches_pattern(one.pattern, one.name), one.matches) << one.pattern << " " << one.name;
}

TEST(NamePattern, TakesNoExponentialTime) {
  std::string pattern;
  for (int i = 0; i < 30; ++i) pattern += "*a";
  EXPECT_FALSE(matches_pattern(pattern + "b", std::string(200, 'a')));
}

}  // namespace
}  // namespace ptkit::base
