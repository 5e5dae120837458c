// The header in C99; sizes of structures, which are part of the ABI.
#include "c99.h"
#include "handle.h"
#include "unit/support/traces/loop_stream.h"

namespace ptkit::api::c {
namespace {

using flow::kLoop;
using flow::loop;

TEST(C99, DecodesABuffer) {
  const auto stream = loop(3);
  EXPECT_EQ(c99_new_edges(kLoop.data(), kLoop.size(), stream.data(), stream.size()), 2);
  EXPECT_EQ(c99_new_edges(nullptr, 1, stream.data(), stream.size()), -PTKIT_BAD_CONFIG);
}

// A member may only be added to a structure that begins with its size.
TEST(C99, SizesAreOfTheAbi) {
  EXPECT_EQ(c99_size_of_options(), 152u);
  EXPECT_EQ(c99_size_of_outcome(), 88u);
  EXPECT_EQ(c99_size_of_edge(), 32u);
  EXPECT_EQ(c99_size_of_error(), 24u);
  EXPECT_EQ(c99_size_of_options(), sizeof(ptkit_options));
  EXPECT_EQ(c99_size_of_outcome(), sizeof(ptkit_outcome));
}

TEST(C99, VersionsOfTheLibrary) {
  EXPECT_EQ(ptkit_abi_version(), unsigned{PTKIT_ABI_VERSION});
  EXPECT_STREQ(ptkit_version(), PTKIT_TEST_RELEASE);
}

}  // namespace
}  // namespace ptkit::api::c
