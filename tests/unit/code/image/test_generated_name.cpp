#include <gtest/gtest.h>

#include "code/image/generated_name.h"

namespace ptkit::code::image {
namespace {

TEST(GeneratedName, HasModuleAndRva) {
  EXPECT_EQ(generated_name("libc.so.6", 0x26110), "libc.so.6!0x26110");
  EXPECT_EQ(generated_name("driver.sys", 0), "driver.sys!0x0");
  EXPECT_EQ(generated_name("", 0x427c), "sub_427C");
  EXPECT_TRUE(may_be_generated(generated_name("libc.so.6", 0x26110)));
  EXPECT_FALSE(may_be_generated("main"));
}

TEST(GeneratedName, OfAnAddressHasBracketsOnce) {
  EXPECT_EQ(address_in_module("gzip", 0x1010), "[gzip]+0x1010");
  EXPECT_EQ(address_in_module("[anon 0x7000]", 0), "[anon 0x7000]+0x0");
}

}  // namespace
}  // namespace ptkit::code::image
