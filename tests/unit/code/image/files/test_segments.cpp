// Relative virtual addresses by the segments of generated ELF files.
#include <gtest/gtest.h>

#include "code/image/files/segments.h"
#include "unit/support/makers/elf_maker.h"

namespace ptkit::code::image {
namespace {

using test::Elf64Maker;

// As lld lays out a library: code lies a page further in memory than in the file.
Elf64Maker shifted(std::uint64_t linked_at = 0) {
  Elf64Maker maker;
  maker.type = ET_DYN;
  maker.segments.push_back({.address = linked_at, .file_size = 0x560, .flags = PF_R});
  maker.segments.push_back({.address = linked_at + 0x1560, .offset = 0x560, .file_size = 0x800});
  maker.segments.push_back(
      {.address = linked_at + 0x2d60, .offset = 0xd60, .file_size = 0x100, .flags = PF_R});
  return maker;
}

trace::CodeRegion mapped(std::uint64_t file_offset, std::uint64_t size) {
  trace::CodeRegion region;
  region.file_offset = file_offset;
  region.size = size;
  return region;
}

TEST(Segments, CountFromThePageOfTheLowestSegment) {
  for (const std::uint64_t linked_at : {0x0ULL, 0x400000ULL, 0x400040ULL}) {
    const auto segments = file_segments(shifted(linked_at).make());
    ASSERT_EQ(segments.size(), 3u);
    EXPECT_EQ(segments[1].rva, 0x1560 + linked_at % 0x1000);
    EXPECT_TRUE(segments[1].executable);
    EXPECT_FALSE(segments[2].executable);
  }
}

TEST(Segments, OfTheKernelCountFromItsText) {
  Elf64Maker maker;
  maker.segments.push_back({.address = 0xffff'ffff'8100'0000, .offset = 0x1000, .file_size = 0x100});
  maker.segments.push_back({.address = 0, .offset = 0x2000, .file_size = 0x100});  // data of each processor
  EXPECT_EQ(file_segments(maker.make()).front().rva, 0u);
}

TEST(Segments, OfCoreFilesAndOthersAreNotKnown) {
  Elf64Maker maker = shifted();
  maker.type = ET_CORE;
  EXPECT_TRUE(file_segments(maker.make()).empty());
  EXPECT_TRUE(file_segments(test::ByteVector{'n', 'o', ' ', 'E', 'L', 'F'}).empty());
}

TEST(Segments, CodeWinsWhereMappedPagesOverlap) {
  const auto segments = file_segments(shifted().make());
  const trace::CodeRegion text = mapped(0, 0x1000);  // as the kernel maps it: whole pages
  EXPECT_EQ(rva_of(segments, text, 0x600), 0x1600u);
  EXPECT_EQ(rva_of(segments, text, 0x234), 0x1234u);
  EXPECT_EQ(rva_of(segments, mapped(0x1000, 0x1000), 0x1010), std::nullopt);
}

TEST(Segments, ARegionOfOneSegmentIsOfThatSegment) {
  const auto segments = file_segments(shifted().make());
  EXPECT_EQ(rva_of(segments, mapped(0, 0x560), 0x234), 0x234u);
  EXPECT_EQ(rva_of(segments, mapped(0xd60, 0x100), 0xd64), 0x2d64u);
}

}  // namespace
}  // namespace ptkit::code::image
