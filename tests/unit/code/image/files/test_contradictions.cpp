#include <gtest/gtest.h>

#include <vector>

#include "code/image/files/contradictions.h"
#include "unit/support/makers/elf_maker.h"

namespace ptkit::code::image {
namespace {

using ptkit::test::ByteVector;
using ptkit::test::Elf64Maker;

// Code at [0x1000, 0x3100) and data at [0x3100, 0x3200) of the file, after read-only data.
ByteVector library() {
  Elf64Maker maker;
  maker.type = ET_DYN;
  maker.segments.push_back({PT_LOAD, 0, 0, 0x800, 0x800, 0x1000, PF_R});
  maker.segments.push_back({PT_LOAD, 0x1000, 0x1000, 0x2100, 0x2100, 0x1000, PF_R | PF_X});
  maker.segments.push_back({PT_LOAD, 0x4100, 0x3100, 0x100, 0x2000, 0x1000, PF_R | PF_W});
  ByteVector bytes = maker.make();
  bytes.resize(0x3200);
  return bytes;
}

bool agrees(const std::vector<FileMapping>& mappings, const ByteVector& file = library()) {
  return mapping_contradiction(file, mappings).empty();
}

TEST(Contradictions, LoadersMapSegmentsWhole) {
  EXPECT_TRUE(agrees({{.offset = 0x1000, .size = 0x3000}}));
  EXPECT_TRUE(agrees({{.offset = 0x1000, .size = 0x2100}}));
  EXPECT_TRUE(agrees({{.offset = 0x1000, .size = 0}}));  // the size was not recorded
  // Another offset, a larger or a smaller segment.
  EXPECT_FALSE(agrees({{.offset = 0, .size = 0x3000}}));
  EXPECT_FALSE(agrees({{.offset = 0x5000, .size = 0x1000}}));
  EXPECT_FALSE(agrees({{.offset = 0x1000, .size = 0x4000}}));
  EXPECT_FALSE(agrees({{.offset = 0x1000, .size = 0x2000}}));
  EXPECT_FALSE(agrees({{.offset = 0x2000, .size = 0x2000}}));
  EXPECT_FALSE(agrees({{.offset = 0x1000, .size = ~std::uint64_t{0}}}));
  EXPECT_TRUE(agrees({}));
}

TEST(Contradictions, NameBothAddresses) {
  EXPECT_EQ(mapping_contradiction(library(), std::vector<FileMapping>{{.offset = 0x5000, .size = 0x1000}}),
            "has code at [0x1000, 0x4000), the recording at [0x5000, 0x6000)");
}

// mprotect() of some pages splits a mapping.
TEST(Contradictions, PartsOfASegmentMakeItWhole) {
  EXPECT_TRUE(agrees({{.offset = 0x1000, .size = 0x1000}, {.offset = 0x3000, .size = 0x1000}}));
  EXPECT_FALSE(agrees({{.offset = 0x1000, .size = 0x1000}, {.offset = 0x2000, .size = 0x1000}}));
}

TEST(Contradictions, AnonymousCodeTakesTheRest) {
  EXPECT_TRUE(agrees({{.offset = 0x1000, .size = 0x1000, .is_followed = true}}));
  EXPECT_TRUE(agrees({{.offset = 0x3000, .size = 0x1000, .is_preceded = true}}));
  EXPECT_FALSE(agrees({{.offset = 0x3000, .size = 0x1000, .is_followed = true}}));
}

TEST(Contradictions, DataMayBeExecutableBesideCode) {
  EXPECT_TRUE(agrees({{.offset = 0x1000, .size = 0x3000}, {.offset = 0x3000, .size = 0x1000}}));
  EXPECT_TRUE(agrees({{.offset = 0, .size = 0x1000}, {.offset = 0x1000, .size = 0x3000}}));
  EXPECT_FALSE(agrees({{.offset = 0, .size = 0x1000}}));
}

// V8 maps its builtins once more, near the code that it makes.
TEST(Contradictions, APartMayBeMappedOnceMore) {
  const std::vector<FileMapping> again{{.offset = 0x2000, .size = 0x1000}};
  const std::vector<FileMapping> whole{{.offset = 0x1000, .size = 0x3000}};
  const auto agrees_beside = [&](const std::vector<FileMapping>& mappings,
                                 const std::vector<std::vector<FileMapping>>& others) {
    return mapping_contradiction(library(), mappings, others).empty();
  };
  EXPECT_TRUE(agrees_beside(again, {whole}));
  EXPECT_TRUE(agrees_beside(again, {{{.offset = 0x3000, .size = 0x1000}}, whole}));
  EXPECT_TRUE(agrees_beside({{.offset = 0, .size = 0x1000}}, {whole}));
  EXPECT_TRUE(agrees_beside(whole, {again}));
  EXPECT_FALSE(agrees_beside(again, {again}));
  EXPECT_FALSE(agrees_beside(again, {{{.offset = 0x1000, .size = 0x4000}}}));
  EXPECT_FALSE(agrees_beside({{.offset = 0x4000, .size = 0x1000}}, {whole}));
}

// The kernel merges segments of equal rights if their pages are adjacent in the file.
TEST(Contradictions, SegmentsMayBeOneMapping) {
  Elf64Maker maker;
  maker.segments.push_back({PT_LOAD, 0, 0, 0x800, 0x800, 0x1000, PF_R});
  maker.segments.push_back({PT_LOAD, 0x1000, 0x1000, 0x1100, 0x1100, 0x1000, PF_R | PF_X});
  maker.segments.push_back({PT_LOAD, 0x3000, 0x3000, 0x1000, 0x1000, 0x1000, PF_R});
  maker.segments.push_back({PT_LOAD, 0x5000, 0x4000, 0x100, 0x2000, 0x1000, PF_R | PF_W});
  ByteVector file = maker.make();
  file.resize(0x4100);
  EXPECT_TRUE(agrees({{.offset = 0, .size = 0x4000}}, file));
  EXPECT_TRUE(agrees({{.offset = 0x1000, .size = 0x3000}}, file));
  EXPECT_TRUE(agrees({{.offset = 0, .size = 0x3000}}, file));
  EXPECT_TRUE(agrees({{.offset = 0, .size = 0x7000}}, file));  // room for all
  EXPECT_FALSE(agrees({{.offset = 0, .size = 0x2000}}, file));
  EXPECT_FALSE(agrees({{.offset = 0x2000, .size = 0x2000}}, file));
  EXPECT_FALSE(agrees({{.offset = 0x1000, .size = 0x4000}}, file));  // data lie elsewhere
  EXPECT_FALSE(agrees({{.offset = 0x3000, .size = 0x1000}}, file));
}

// perf inject writes JIT code so, and maps it with the size of the code.
TEST(Contradictions, TheLastSegmentMayBeMappedToTheEndOfTheFile) {
  Elf64Maker maker;
  maker.segments.push_back({PT_LOAD, 0, 0, 0xff0, 0xff0, 0x1000, PF_R | PF_X});
  ByteVector file = maker.make();
  file.resize(0x1400);
  EXPECT_TRUE(agrees({{.offset = 0x80, .size = 0xff0}}, file));
  EXPECT_FALSE(agrees({{.offset = 0x80, .size = 0x1ff0}}, file));
  maker.segments.push_back({PT_LOAD, 0x1000, 0x1000, 0xff0, 0xff0, 0x1000, PF_R | PF_X});
  maker.segments.push_back({PT_LOAD, 0x4000, 0x2000, 0x400, 0x400, 0x1000, PF_R});
  file = maker.make();
  file.resize(0x2400);
  EXPECT_FALSE(agrees({{.offset = 0x1080, .size = 0xff0}}, file));
}

// The first segment of a program takes the room of all others at first.
TEST(Contradictions, TheFirstSegmentMayBeMappedWithRoomForAll) {
  Elf64Maker maker;
  maker.segments.push_back({PT_LOAD, 0x400000, 0, 0x1100, 0x1100, 0x1000, PF_R | PF_X});
  maker.segments.push_back({PT_LOAD, 0x602000, 0x1100, 0x100, 0x900, 0x1000, PF_R | PF_W});
  ByteVector file = maker.make();
  file.resize(0x1200);
  EXPECT_TRUE(agrees({{.offset = 0, .size = 0x2000}}, file));
  EXPECT_TRUE(agrees({{.offset = 0, .size = 0x203000}}, file));
  EXPECT_FALSE(agrees({{.offset = 0, .size = 0x204000}}, file));
  EXPECT_FALSE(agrees({{.offset = 0x1000, .size = 0x202000}}, file));
}

TEST(Contradictions, OtherFilesAgreeWithAll) {
  EXPECT_TRUE(agrees({{.offset = 0x5000, .size = 0x1000}}, ByteVector(0x100, 0x90)));
  EXPECT_TRUE(agrees({{.offset = 0x5000, .size = 0x1000}}, {}));
}

// Offsets and sizes up to the end of 64 bits.
TEST(Contradictions, SurviveAbsurdHeaders) {
  constexpr std::uint64_t kMost = ~std::uint64_t{0};
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{0x1000}, kMost - 0x10, kMost}) {
    for (const std::uint64_t size : {std::uint64_t{1}, kMost - 0x1000, kMost}) {
      Elf64Maker maker;
      maker.segments.push_back({PT_LOAD, offset, offset, size, size, 0x1000, PF_R | PF_X});
      EXPECT_NO_FATAL_FAILURE(static_cast<void>(
          agrees({{.offset = offset, .size = size}, {.offset = kMost, .size = kMost}}, maker.make())));
    }
  }
}

TEST(Contradictions, NameOtherMachines) {
  Elf64Maker maker;
  EXPECT_EQ(other_machine(maker.make()), "");
  EXPECT_EQ(other_machine(ptkit::test::Elf32Maker().make()), "");
  maker.machine = EM_AARCH64;
  EXPECT_EQ(other_machine(maker.make()), "is an ELF file for machine 183, not for x86");
  ByteVector big = Elf64Maker().make();
  big[EI_DATA] = ELFDATA2MSB;
  big[18] = 0;
  big[19] = EM_S390;
  EXPECT_EQ(other_machine(big), "is an ELF file for machine 22, not for x86");
  big.resize(19);
  EXPECT_EQ(other_machine(big), "");
  EXPECT_EQ(other_machine({}), "");
}

}  // namespace
}  // namespace ptkit::code::image
