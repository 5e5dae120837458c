// What units share.
#include <gtest/gtest.h>

#include "code/source/dwarf/context.h"

namespace ptkit::code::dwarf {
namespace {

TEST(Context, FindsTheLongestString) {
  const std::uint8_t text[] = {'a', 0, 'b', 'c', 'd', 0, 'e', 'f'};
  EXPECT_EQ(longest_string(text), 3u);
  EXPECT_EQ(longest_string({}), 0u);
  EXPECT_EQ(longest_string(base::Bytes(text).last(2)), 2u);
}

}  // namespace
}  // namespace ptkit::code::dwarf
