// Strings within a budget.
#include <gtest/gtest.h>

#include "code/source/strings.h"

namespace ptkit::code::source {
namespace {

TEST(Strings, AreKeptOnceAndWithinTheBudget) {
  Strings strings;
  Budget budget(10);
  const std::uint32_t main = strings.number("main", budget);
  EXPECT_EQ(strings.text(main), "main");
  EXPECT_EQ(strings.number("main", budget), main);
  EXPECT_EQ(strings.number("", budget), kNone);
  EXPECT_EQ(strings.number(nullptr, budget), kNone);
  EXPECT_EQ(strings.number("a name that is too long", budget), kNone);
  EXPECT_TRUE(budget.is_spent());
  EXPECT_EQ(strings.number("main", budget), main);
}

}  // namespace
}  // namespace ptkit::code::source
