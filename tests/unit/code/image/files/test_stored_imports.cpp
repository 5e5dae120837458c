// Import slots in the form that bundles have.
#include <gtest/gtest.h>

#include <array>

#include "code/image/files/imports.h"
#include "unit/support/makers/pe_maker.h"
#include "unit/support/makers/stored_imports.h"

namespace ptkit::code::image {
namespace {

using Bytes = std::vector<std::uint8_t>;

const std::vector<std::string> kModules{"KERNEL32.dll", "WS2_32.dll"};
const std::vector<test::StoredImport> kSlots{
    {0x2000, 1, "CreateFileW"}, {0x2008, 2, "WS2_32!Ordinal23"}, {0x3000, 0, "puts"}};

// What a CALL at RVA 0x1000 takes from the slot at `slot`.
Import called(const Imports& imports, std::uint64_t slot) {
  Bytes code{0xff, 0x15};
  base::append_le(code, static_cast<std::uint32_t>(slot - 0x1006));
  return imports.called(code, 0x1000, 0x7000'1000);
}

TEST(StoredImports, AreWhatTheyWere) {
  const Bytes stored = test::stored_imports(kModules, kSlots);
  const auto imports = Imports::decode(stored);
  ASSERT_TRUE(imports.has_value());
  EXPECT_EQ(called(*imports, 0x2000).name, "CreateFileW");
  EXPECT_EQ(called(*imports, 0x2000).module, "KERNEL32.dll");
  EXPECT_EQ(called(*imports, 0x2008).module, "WS2_32.dll");
  EXPECT_EQ(called(*imports, 0x3000).name, "puts");
  EXPECT_EQ(called(*imports, 0x3000).module, "");
  EXPECT_EQ(called(*imports, 0x2004).name, "");
  EXPECT_EQ(called(*imports, 0x3008).name, "");
  trace::CodeRegion region;
  region.size = 0x1000;
  EXPECT_EQ(imports->rva_of(region, 0x210), 0x1010U);
  EXPECT_EQ(imports->encode(), stored);
}

TEST(StoredImports, OfFilesAreEqualToThose) {
  for (const bool wide : {true, false}) {
    Bytes file = test::small_pe(wide);
    test::put_imports(file, wide);
    const Imports imports{base::Bytes(file)};
    const Bytes stored = imports.encode();
    trace::ImageFile recorded;
    recorded.imports = stored;
    const Imports read = Imports::of(recorded);
    EXPECT_EQ(read.encode(), stored);
    trace::CodeRegion region;
    region.file_offset = test::kTextOffset;
    region.size = 0x10;
    EXPECT_EQ(read.rva_of(region, test::kTextOffset + 4), imports.rva_of(region, test::kTextOffset + 4));
    EXPECT_TRUE(imports.rva_of(region, test::kTextOffset + 4).has_value());
    recorded.contents = trace::TraceBuffer::from_vector(test::small_pe(wide));  // it has none
    EXPECT_TRUE(Imports::of(recorded).empty());
  }
  EXPECT_TRUE(Imports().encode().empty());
  EXPECT_TRUE(Imports::of(trace::ImageFile{}).empty());
}

TEST(StoredImports, RefuseDamage) {
  const Bytes stored = test::stored_imports(kModules, kSlots);
  for (std::size_t size = 0; size < stored.size(); ++size)
    EXPECT_FALSE(Imports::decode(base::Bytes(stored).first(size)).has_value()) << size;
  Bytes longer = stored;
  longer.push_back(0);
  EXPECT_FALSE(Imports::decode(longer).has_value());
  // Flags, and numbers of segments, modules and slots.
  for (std::size_t at = 0; at < 16; at += 4) {
    Bytes changed = stored;
    changed[at + 3] = 0xff;
    EXPECT_FALSE(Imports::decode(changed).has_value()) << at;
  }
}

TEST(StoredImports, RefuseSlotsThatNoFileHas) {
  const auto is_read = [](const std::vector<test::StoredImport>& slots) {
    return Imports::decode(test::stored_imports(kModules, slots)).has_value();
  };
  EXPECT_TRUE(is_read({{~std::uint64_t{0}, 2, "f"}}));
  EXPECT_FALSE(is_read({}));
  EXPECT_FALSE(is_read({{0x2000, 0, ""}}));
  EXPECT_FALSE(is_read({{0x2000, 0, std::string("f\0g", 3)}}));
  EXPECT_FALSE(is_read({{0x2000, 3, "f"}}));
  EXPECT_FALSE(is_read({{0x2000, 0, "f"}, {0x2000, 0, "g"}}));
  EXPECT_FALSE(is_read({{0x2008, 0, "f"}, {0x2000, 0, "g"}}));
}

TEST(StoredImports, RedactedOnesHaveNoNamesOfFiles) {
  const auto imports = Imports::decode(test::stored_imports(kModules, kSlots));
  ASSERT_TRUE(imports.has_value());
  EXPECT_EQ(imports->redacted().encode(),
            test::stored_imports(
                {"module-1", "module-2"},
                {{0x2000, 1, "CreateFileW"}, {0x2008, 2, "module-2!Ordinal23"}, {0x3000, 0, "puts"}}));
}

}  // namespace
}  // namespace ptkit::code::image
