// Code of PE files that lie elsewhere than where they were linked for, against a loader of the test's own.
#include <gtest/gtest.h>

#include <random>

#include "code/image/files/code_file.h"
#include "code/image/pe/pe.h"
#include "unit/support/makers/pe_memory.h"
#include "unit/support/seconds.h"

namespace ptkit::code::image {
namespace {

using test::ByteVector;
using test::kDataOffset;
using test::kPeBase;
using test::kTextAddress;
using test::kTextOffset;
using test::mapped;
using test::put;
using test::put_relocations;
using test::put_section;
using test::small_pe;
using test::TemporaryFile;

constexpr std::uint64_t kLinked32 = 0x40'0000;

std::uint16_t entry(unsigned type, unsigned offset) {
  return static_cast<std::uint16_t>(type << 12U | offset);
}

ByteVector code_of(const ByteVector& file, std::uint64_t base) {
  const TemporaryFile path(file);
  trace::TraceBundle bundle;
  Placement placement;
  placement.load_address = base;
  const auto added = add_image(bundle, path.path(), placement);
  EXPECT_TRUE(added.ok());
  for (const trace::CodeRegion& region : bundle.code) {
    const base::Bytes bytes = region.bytes.bytes();
    if (region.address == base + kTextAddress) return {bytes.begin(), bytes.begin() + 0x100};
  }
  return {};
}

std::uint64_t value_at(const ByteVector& bytes, std::size_t at, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) value = value << 8U | bytes[at + i];
  return value;
}

TEST(PeRelocations, AddressesAreThoseInMemory) {
  ByteVector file = small_pe(false);
  put(file, kTextOffset, 0x15ff, 2);                  // call [0x402150]
  put(file, kTextOffset + 2, kLinked32 + 0x2150, 4);  // HIGHLOW
  put(file, kTextOffset + 0x10, 0x0040, 2);           // HIGH of 0x00401234
  put(file, kTextOffset + 0x20, 0x1234, 2);           // LOW
  put(file, kTextOffset + 0x30, 0x0041, 2);           // HIGHADJ of 0x00409234: 0x9234 is negative
  put_relocations(file, false, kTextAddress,
                  {entry(3, 2), entry(1, 0x10), entry(2, 0x20), entry(4, 0x30), 0x9234, entry(0, 0)});
  const ByteVector linked = code_of(file, kLinked32);
  EXPECT_EQ(value_at(linked, 2, 4), kLinked32 + 0x2150);
  const std::uint64_t base = 0xf7a1'8000;
  const std::uint64_t delta = base - kLinked32;
  const ByteVector moved = code_of(file, base);
  EXPECT_EQ(value_at(moved, 0, 2), 0x15ffU);
  EXPECT_EQ(value_at(moved, 2, 4), base + 0x2150);
  EXPECT_EQ(value_at(moved, 0x10, 2), (0x0040'0000 + delta) >> 16U);
  EXPECT_EQ(value_at(moved, 0x20, 2), (0x1234 + delta) & 0xffffU);
  EXPECT_EQ(value_at(moved, 0x30, 2), (0x0040'9234 + delta + 0x8000) >> 16U);
  EXPECT_EQ(ByteVector(moved.begin() + 0x32, moved.end()), ByteVector(linked.begin() + 0x32, linked.end()));
}

TEST(PeRelocations, AddressesOf64Bits) {
  ByteVector file = small_pe();
  put(file, kTextOffset + 2, kPeBase + 0x2345, 8);
  put(file, kTextOffset + 0x20, 0x2345, 4);
  put_relocations(file, true, kTextAddress, {entry(10, 2), entry(3, 0x20), entry(9, 0x40)});
  const std::uint64_t base = 0x7ffa'1234'0000;
  const ByteVector moved = code_of(file, base);
  EXPECT_EQ(value_at(moved, 2, 8), base + 0x2345);
  EXPECT_EQ(value_at(moved, 0x20, 4), (0x2345 + (base - kPeBase)) & 0xffff'ffffU);
  EXPECT_EQ(value_at(moved, 0x40, 8), value_at(code_of(file, kPeBase), 0x40, 8));  // no type of x86
}

// A dump has the addresses of its base, whether its header says so or not; one that was made of a file
// without a loader has not.
TEST(PeRelocations, DumpsAreNotMovedTwice) {
  const std::uint64_t base = 0x1000'0000;
  ByteVector file = small_pe(false);
  const std::vector<unsigned> offsets{2, 0x12, 0x22};
  for (const unsigned at : offsets) put(file, kTextOffset + at, kLinked32 + 0x2000 + at, 4);
  put_relocations(file, false, kTextAddress, {entry(3, 2), entry(3, 0x12), entry(3, 0x22)});
  const ByteVector expected = code_of(file, base);
  EXPECT_EQ(value_at(expected, 0x12, 4), base + 0x2012);
  ByteVector dump = mapped(file);
  EXPECT_EQ(code_of(dump, base), expected);  // not relocated yet
  for (const unsigned at : offsets) put(dump, kTextAddress + at, base + 0x2000 + at, 4);
  EXPECT_EQ(code_of(dump, base), expected);
  put(dump, 0x98 + 28, base, 4);  // ImageBase, as loaders write it
  EXPECT_EQ(code_of(dump, base), expected);
}

TEST(PeRelocations, AddressesOutsideAreLeft) {
  ByteVector file = small_pe(false);
  for (std::size_t i = 0; i < 0x100; ++i) file[kTextOffset + i] = static_cast<std::uint8_t>(i);
  // Behind the section's 0x180 bytes, across its end, and in no section.
  put_relocations(file, false, kTextAddress, {entry(3, 0x200), entry(3, 0x17e), entry(10, 0xfff)});
  EXPECT_EQ(code_of(file, 0x1000'0000), code_of(file, kLinked32));
  put_relocations(file, false, 0xffff'f000, {entry(3, 0xfff)});
  EXPECT_EQ(code_of(file, 0x1000'0000), code_of(file, kLinked32));
  put(file, kDataOffset + 0x1c4, 0xffff'ffff, 4);  // the block's size
  EXPECT_EQ(code_of(file, 0x1000'0000), code_of(file, kLinked32));
}

// Many sections and a table as large as the file: work is bounded by both together.
TEST(PeRelocations, HostileTablesAreFast) {
  constexpr std::uint32_t kBytes = 0x40'0000;
  ByteVector file = small_pe(false);
  put(file, 0x98 + 96 + 40, 0x1'0000, 4);
  put(file, 0x98 + 96 + 44, kBytes, 4);
  const std::size_t table = 0x98 + 224;
  put(file, 0x86, 100, 2);
  file.resize(kBytes + 0x2'0000, 0x33);
  for (std::uint32_t i = 0; i < 100; ++i) {
    test::put_section(file, table + i * 40, ".x", kBytes, 0x1000 + i, kBytes, 0x2000);
    put(file, table + i * 40 + 36, 0x6000'0020, 4);
  }
  for (std::uint32_t at = 0x2000; at + 8 < kBytes; at += 8) {
    put(file, at, 0x1000, 4);
    put(file, at + 4, 8, 4);
  }
  const TemporaryFile path(file);
  const double seconds = ptkit::test::seconds_of([&] {
    trace::TraceBundle bundle;
    Placement placement;
    placement.load_address = 0x1000'0000;
    ASSERT_TRUE(add_image(bundle, path.path(), placement).ok());
    for (const trace::CodeRegion& region : bundle.code) EXPECT_FALSE(region.bytes.bytes().empty());
  });
  EXPECT_LT(seconds, 5.0);
}

// Sections of one byte, with relocations of their page that all of them have to look at.
TEST(PeRelocations, ManySectionsOfOnePageAreFast) {
  constexpr std::uint32_t kSections = 0xffff;
  constexpr std::uint32_t kTable = 0x40'0000;
  ByteVector file = small_pe(false);
  const std::size_t rows = 0x98 + 224;
  const std::uint32_t begin = 0x30'0000;
  put(file, 0x86, kSections, 2);
  file.resize(begin + kTable, 0);
  put(file, 0x98 + 96 + 40, 0x100'0000, 4);
  put(file, 0x98 + 96 + 44, kTable, 4);
  put_section(file, rows, ".reloc", kTable, 0x100'0000, kTable, begin);
  for (std::uint32_t i = 1; i < kSections; ++i) {
    put_section(file, rows + i * std::size_t{40}, ".x", 1, 0x10'0000 + i, 1, 0x2000);
    put(file, rows + i * std::size_t{40} + 36, 0x6000'0020, 4);
  }
  put(file, begin, 0x10'0000, 4);
  put(file, begin + 4, kTable, 4);
  for (std::size_t at = begin + 8; at < file.size(); at += 2) put(file, at, entry(3, 1), 2);
  const TemporaryFile path(file);
  const double seconds = ptkit::test::seconds_of([&] {
    trace::TraceBundle bundle;
    Placement placement;
    placement.load_address = 0x1000'0000;
    ASSERT_TRUE(add_image(bundle, path.path(), placement).ok());
    for (const trace::CodeRegion& region : bundle.code) EXPECT_FALSE(region.bytes.bytes().empty());
  });
  EXPECT_LT(seconds, 5.0);
}

TEST(PeRelocations, SurvivesDamage) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 600; ++round) {
    const bool wide = round % 2 == 0;
    ByteVector bytes = small_pe(wide);
    put_relocations(bytes, wide, kTextAddress,
                    {entry(3, 2), entry(10, 0x10), entry(4, 0x20), 7, entry(1, 0x40)});
    if (round % 3 == 0) bytes = mapped(bytes);
    for (int i = 0; i < 4; ++i) bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    const std::size_t table = (round % 3 == 0 ? test::kDataAddress : kDataOffset) + 0x1c0;
    for (std::size_t i = 0; i < 3; ++i) bytes[table + random() % 20] = static_cast<std::uint8_t>(random());
    const TemporaryFile path(bytes);
    trace::TraceBundle bundle;
    Placement placement;
    placement.load_address = random();
    if (!add_image(bundle, path.path(), placement).ok()) continue;
    for (const trace::CodeRegion& region : bundle.code) EXPECT_EQ(region.bytes.bytes().size(), region.size);
  }
}

}  // namespace
}  // namespace ptkit::code::image
