// Code that a bundle stores once for many address spaces.
#include <gtest/gtest.h>

#include "formats/ptk/code_store.h"

namespace ptkit::formats::ptk {
namespace {

trace::CodeRegion region(trace::SpaceId space, std::uint64_t address, std::uint64_t offset,
                         std::uint64_t size, bool bytes) {
  trace::CodeRegion out;
  out.space = space;
  out.address = address;
  out.file_offset = offset;
  out.size = size;
  out.file = 0;
  out.shared = true;
  if (!bytes) return out;
  std::vector<std::uint8_t> content(size);
  for (std::uint64_t i = 0; i < size; ++i) content[i] = static_cast<std::uint8_t>(offset + i);
  out.bytes = trace::TraceBuffer::from_vector(std::move(content));
  return out;
}

TEST(SharedCode, SuppliesBytesToOtherMappingsOfTheFile) {
  std::vector<trace::CodeRegion> code{region(1, 0x1000, 0, 16, true), region(1, 0x1010, 16, 16, true),
                                      region(2, 0x9008, 8, 20, false), region(3, 0x9000, 40, 8, false)};
  share_code(code);
  ASSERT_EQ(code.size(), 6U);
  std::vector<std::uint8_t> seen;
  for (std::size_t i = 4; i < 6; ++i) {
    EXPECT_EQ(code[i].space, 2U);
    EXPECT_EQ(code[i].address, 0x9008 + seen.size());
    EXPECT_EQ(code[i].size, code[i].bytes.size());
    const base::Bytes bytes = code[i].bytes.bytes();
    seen.insert(seen.end(), bytes.begin(), bytes.end());
  }
  ASSERT_EQ(seen.size(), 20U);
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], 8 + i);
}

TEST(SharedCode, UsesMarkedRegionsOnly) {
  std::vector<trace::CodeRegion> code{region(1, 0x1000, 0, 16, true), region(2, 0x1000, 0, 16, false)};
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<trace::CodeRegion> changed = code;
    changed[i].shared = false;
    share_code(changed);
    EXPECT_EQ(changed.size(), 2U);
  }
  code[1].file = 1;
  share_code(code);
  EXPECT_EQ(code.size(), 2U);
}

TEST(EndedCode, EndsMappingsThatBeganBefore) {
  std::vector<trace::CodeRegion> code(5, region(1, 0x2000, 0, 16, true));
  code[1].tsc_from = 50;  // at the same addresses after the end
  code[2].space = 2;
  code[3].address = 0x1ff0;  // begins below
  code[4].address = 0x2fff;
  trace::CodeRegion end = region(1, 0x2000, 0, 0x1000, false);
  end.tsc_from = 50;
  trace::CodeRegion later = end;
  later.tsc_from = 90;
  end_code(code, {later, end});
  EXPECT_EQ(code[0].tsc_to, 50U);
  EXPECT_EQ(code[1].tsc_to, 90U);
  EXPECT_EQ(code[2].tsc_to, trace::kTscMax);
  EXPECT_EQ(code[3].tsc_to, trace::kTscMax);
  EXPECT_EQ(code[4].tsc_to, 50U);
}

TEST(EndedCode, EndsAtTheTopOfTheAddressSpace) {
  std::vector<trace::CodeRegion> code{region(0, 0xffffffff'fffff000, 0, 16, true)};
  trace::CodeRegion end = region(0, 0xffffffff'fffff000, 0, 0x1000, false);
  end.tsc_from = 5;
  end_code(code, {end});
  EXPECT_EQ(code[0].tsc_to, 5U);
}

}  // namespace
}  // namespace ptkit::formats::ptk
