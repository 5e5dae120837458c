// Name ranges in bundles.
#include <gtest/gtest.h>

#include "formats/ptk/writer.h"
#include "formats/registry.h"
#include "unit/support/scratch.h"

namespace ptkit::formats {
namespace {

TEST(PtkNames, ListsOfSymbolsAreKept) {
  trace::TraceBundle bundle;
  bundle.spaces.resize(2);
  bundle.spaces[1].pid = 10;
  bundle.files = {{"nt", "", {}, {}}, {"list.nm", "", {}, {{"f", 0x1010, 8}}}};
  bundle.names = {{0, 0xfffff803'61a00000, 0x1000, 0, 0}, {1, 0x7000'1000, 0x2000, 1, 0x1000}};
  const test::Scratch scratch;
  ASSERT_TRUE(save_ptk(bundle, scratch.at("names.ptk"), {}).ok());
  const auto read = open(scratch.at("names.ptk"), {});
  ASSERT_TRUE(read.ok()) << read.failure().detail;
  EXPECT_TRUE(read.value().code.empty());
  ASSERT_EQ(read.value().names.size(), 2u);
  const trace::NameRange& range = read.value().names[1];
  EXPECT_EQ(range.space, 1u);
  EXPECT_EQ(range.address, 0x7000'1000u);
  EXPECT_EQ(range.size, 0x2000u);
  EXPECT_EQ(range.file_offset, 0x1000u);
  const trace::ImageFile& file = read.value().files[static_cast<std::size_t>(range.file)];
  EXPECT_EQ(file.path, "list.nm");
  ASSERT_EQ(file.symbols.size(), 1u);
  EXPECT_EQ(file.symbols[0].name, "f");
}

}  // namespace
}  // namespace ptkit::formats
