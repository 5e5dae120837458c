// Generated PE files and damaged files.
#include <gtest/gtest.h>

#include <random>

#include "image/code_file.h"
#include "image/pe.h"
#include "image/segments.h"
#include "unit/support/elf_maker.h"
#include "unit/support/seconds.h"
#include "unit/support/warned.h"

namespace ptkit::image {
namespace {

using base::Status;
using test::ByteVector;
using test::TemporaryFile;

constexpr std::uint32_t kTextOffset = 0x400;
constexpr std::uint32_t kDataOffset = 0x600;
constexpr std::uint32_t kTextAddress = 0x1000;
constexpr std::uint32_t kDataAddress = 0x2000;
constexpr std::uint64_t kBase = 0x1'4000'0000;

void put(ByteVector& bytes, std::size_t at, std::uint64_t value, std::size_t size) {
  if (bytes.size() < at + size) bytes.resize(at + size);
  for (std::size_t i = 0; i < size; ++i, value >>= 8U) bytes[at + i] = static_cast<std::uint8_t>(value);
}

void put(ByteVector& bytes, std::size_t at, const std::string& text) {
  if (bytes.size() < at + text.size()) bytes.resize(at + text.size());
  std::copy(text.begin(), text.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

void put_section(ByteVector& bytes, std::size_t row, const char* name, std::uint32_t size,
                 std::uint32_t address, std::uint32_t file_size, std::uint32_t offset) {
  put(bytes, row, name);
  put(bytes, row + 8, size, 4);
  put(bytes, row + 12, address, 4);
  put(bytes, row + 16, file_size, 4);
  put(bytes, row + 20, offset, 4);
}

// A data directory: its number and its offset in the data section.
void put_directory(ByteVector& bytes, std::size_t directories, unsigned number, std::uint32_t at,
                   std::uint32_t size) {
  put(bytes, directories + number * 8, kDataAddress + at, 4);
  put(bytes, directories + number * 8 + 4, size, 4);
}

// A file that exports `first` (after a forwarded export), with the sizes of two functions, a PDB, and a COFF
// symbol.
ByteVector small_file(bool wide = true) {
  constexpr std::size_t kHeader = 0x80;
  constexpr std::size_t kOptional = kHeader + 24;
  ByteVector bytes(0x800, 0);
  put(bytes, 0, "MZ");
  put(bytes, 0x3c, kHeader, 4);
  put(bytes, kHeader, "PE");
  put(bytes, kHeader + 4, wide ? 0x8664 : 0x14c, 2);
  put(bytes, kHeader + 6, 3, 2);
  put(bytes, kHeader + 12, 0x800, 4);  // symbols
  put(bytes, kHeader + 16, 3, 4);
  const std::size_t optional_size = wide ? 240 : 224;
  put(bytes, kHeader + 20, optional_size, 2);
  put(bytes, kOptional, wide ? 0x20b : 0x10b, 2);
  put(bytes, kOptional + (wide ? 24 : 28), wide ? kBase : 0x400000, wide ? 8 : 4);
  put(bytes, kOptional + 56, 0x5000, 4);
  put(bytes, kOptional + 60, 0x400, 4);
  const std::size_t directories = kOptional + (wide ? 112 : 96);
  put(bytes, directories - 4, 16, 4);
  const std::size_t sections = kOptional + optional_size;
  put_section(bytes, sections, ".text", 0x180, kTextAddress, 0x200, kTextOffset);
  put_section(bytes, sections + 40, ".rdata", 0x1000, kDataAddress, 0x200, kDataOffset);
  put_section(bytes, sections + 80, ".bss", 0x1000, 0x4000, 0, 0);
  put(bytes, sections + 36, 0x6000'0020, 4);  // code: execute, read
  bytes[kTextOffset] = 0xc3;

  put_directory(bytes, directories, 0, 0, 0x80);
  const auto at = [](std::uint32_t offset) { return kDataOffset + offset; };
  put(bytes, at(20), 2, 4);  // functions
  put(bytes, at(24), 2, 4);  // names
  put(bytes, at(28), kDataAddress + 40, 4);
  put(bytes, at(32), kDataAddress + 48, 4);
  put(bytes, at(36), kDataAddress + 56, 4);
  put(bytes, at(40), kDataAddress + 0x60, 4);  // inside of the directory: forwarded
  put(bytes, at(44), kTextAddress + 0x10, 4);
  put(bytes, at(48), kDataAddress + 0x60, 4);
  put(bytes, at(52), kDataAddress + 0x70, 4);
  put(bytes, at(56), 0, 2);
  put(bytes, at(58), 1, 2);
  put(bytes, at(0x60), "OTHER.elsewhere");
  put(bytes, at(0x70), "first");

  put_directory(bytes, directories, 3, 0x80, 24);
  put(bytes, at(0x80), kTextAddress + 0x10, 4);
  put(bytes, at(0x84), kTextAddress + 0x30, 4);
  put(bytes, at(0x8c), kTextAddress + 0x40, 4);
  put(bytes, at(0x90), kTextAddress + 0x48, 4);

  put_directory(bytes, directories, 6, 0xa0, 28);
  put(bytes, at(0xa0 + 12), 2, 4);
  put(bytes, at(0xa0 + 16), 30, 4);
  put(bytes, at(0xa0 + 24), at(0xc0), 4);
  put(bytes, at(0xc0), "RSDS");
  put(bytes, at(0xc4), 0x3f2504e0, 4);
  put(bytes, at(0xc8), 0x4f89, 2);
  put(bytes, at(0xca), 0x11d3, 2);
  put(bytes, at(0xcc), 0x01332ce805030c9a, 8);
  put(bytes, at(0xd4), 0x1a, 4);

  const std::size_t symbols = 0x800;  // a function with an auxiliary row, and a datum
  put(bytes, symbols, 0, 4);
  put(bytes, symbols + 4, 4, 4);
  put(bytes, symbols + 8, 0x40, 4);
  put(bytes, symbols + 12, 1, 2);
  put(bytes, symbols + 14, 0x20, 2);
  put(bytes, symbols + 17, 1, 1);
  put(bytes, symbols + 36, "datum");
  put(bytes, symbols + 36 + 12, 1, 2);
  put(bytes, symbols + 36 + 17, 0, 1);
  put(bytes, symbols + 54, 4 + 20, 4);
  put(bytes, symbols + 58, std::string("a_long_name_of_coff") + '\0');
  return bytes;
}

TEST(Pe, MapsSectionsAtTheLinkedBase) {
  const TemporaryFile file(small_file());
  trace::TraceBundle bundle;
  const auto added = add_image(bundle, file.path(), {});
  ASSERT_TRUE(added.ok()) << added.failure().detail;
  ASSERT_EQ(bundle.code.size(), 2u);
  EXPECT_EQ(bundle.code[0].address, kBase + kTextAddress);
  EXPECT_EQ(bundle.code[0].size, 0x180u);  // padding of the file is not mapped
  EXPECT_EQ(bundle.code[0].file_offset, kTextOffset);
  EXPECT_EQ(bundle.code[0].bytes.bytes()[0], 0xc3);
  EXPECT_EQ(bundle.code[1].size, 0x200u);  // the rest is zeros
  ASSERT_EQ(bundle.files.size(), 1u);
  EXPECT_EQ(bundle.files[0].build_id, "3f2504e04f8911d39a0c0305e82c3301-1a");
}

TEST(Pe, SegmentsAreSectionsWithBytes) {
  const auto segments = file_segments(small_file());
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].file_offset, kTextOffset);
  EXPECT_EQ(segments[0].rva, kTextAddress);
  EXPECT_TRUE(segments[0].executable);
  EXPECT_EQ(segments[1].size, 0x200u);
  EXPECT_EQ(segments[1].rva, kDataAddress);
  EXPECT_FALSE(segments[1].executable);
}

TEST(Pe, MapsAtGivenOrRecordedBase) {
  const TemporaryFile file(small_file());
  const std::string name = file.path().substr(file.path().find_last_of('/') + 1);
  trace::TraceBundle bundle;
  bundle.files.push_back({"C:\\Other\\other.dll", "", {}, {}});
  std::string upper = "C:\\Windows\\" + name;
  for (char& letter : upper) letter = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  bundle.files.push_back({upper, "", {}, {}});
  trace::CodeRegion other;
  other.address = 0x1000;
  other.size = 0x1000;
  other.file = 0;
  trace::CodeRegion module = other;
  module.address = 0x7ff600000000;
  module.file = 1;
  bundle.code = {other, module};
  ASSERT_TRUE(add_pe(bundle, file.path(), {}).ok());
  EXPECT_EQ(bundle.code[2].address, 0x7ff600000000 + kTextAddress);
  Placement placement;
  placement.load_address = 0x10000;
  ASSERT_TRUE(add_pe(bundle, file.path(), placement).ok());
  EXPECT_EQ(bundle.code[4].address, 0x10000u + kTextAddress);
}

TEST(Pe, WarnsOfBuildsOfAnotherSize) {
  const TemporaryFile file(small_file());
  trace::TraceBundle bundle;
  bundle.files.push_back({file.path(), "", {}, {}});
  trace::CodeRegion& module = bundle.code.emplace_back();
  module.address = 0x7ff600000000;
  module.size = 0x4001;  // as many pages as its 0x5000 bytes
  module.file = 0;
  ASSERT_TRUE(add_pe(bundle, file.path(), {}).ok());
  EXPECT_TRUE(bundle.warnings.empty());
  bundle.code.resize(1);
  bundle.code[0].size = 0x4000;
  ASSERT_TRUE(add_pe(bundle, file.path(), {}).ok());
  EXPECT_EQ(bundle.warnings.size(), 1u);
  EXPECT_TRUE(warns_at(bundle.warnings, file.path(), WarningCode::IMAGE_SIZE_MISMATCH, 20480, 16384));
}

TEST(Pe, ReadsSymbolsWithSizes) {
  const ByteVector bytes = small_file();
  const auto symbols = read_symbols(bytes);
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols[0].name, "first");
  EXPECT_EQ(symbols[0].file_offset, kTextOffset + 0x10);
  EXPECT_EQ(symbols[0].size, 0x20u);
  EXPECT_EQ(symbols[1].name, "a_long_name_of_coff");
  EXPECT_EQ(symbols[1].file_offset, kTextOffset + 0x40);
  EXPECT_EQ(symbols[1].size, 8u);
}

TEST(Pe, Reads32BitFiles) {
  const TemporaryFile file(small_file(false));
  trace::TraceBundle bundle;
  ASSERT_TRUE(add_pe(bundle, file.path(), {}).ok());
  EXPECT_EQ(bundle.code[0].address, 0x400000u + kTextAddress);
  const auto symbols = pe_symbols(small_file(false));
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols[0].size, 0u);  // no table of functions
}

std::string failure_of(const ByteVector& bytes) {
  const TemporaryFile file(bytes);
  trace::TraceBundle bundle;
  const auto added = add_pe(bundle, file.path(), {});
  EXPECT_TRUE(bundle.code.empty() && bundle.files.empty());
  return added.ok() ? "(it was added)" : added.failure().detail;
}

TEST(Pe, NamesTheDefect) {
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  ByteVector bytes = small_file();
  EXPECT_TRUE(has(failure_of(ByteVector(10, 'x')), "does not begin with MZ"));
  put(bytes, 0x84, 0xaa64, 2);
  EXPECT_TRUE(has(failure_of(bytes), "another processor"));
  bytes = small_file();
  bytes.resize(0x500);
  EXPECT_TRUE(has(failure_of(bytes), "a section ends after the end of the file"));
  bytes.resize(0x150);
  EXPECT_TRUE(has(failure_of(bytes), "is cut"));
  bytes = small_file();
  put(bytes, 0x3c, 0xfffffff0, 4);
  EXPECT_TRUE(has(failure_of(bytes), "no PE header"));
}

void put_symbol(ByteVector& bytes, std::size_t row, std::uint32_t name, std::uint32_t value,
                std::uint32_t section) {
  put(bytes, row + 4, name, 4);
  put(bytes, row + 8, value, 4);
  put(bytes, row + 12, section, 2);
  put(bytes, row + 14, 0x20, 4);
}

TEST(Pe, LimitsMemoryOfSharedNames) {
  constexpr std::uint32_t kCount = 0x180;  // one for each byte of the section
  ByteVector bytes = small_file();
  bytes.resize(0x800);
  put(bytes, 0x80 + 16, kCount, 4);
  for (std::uint32_t i = 0; i < kCount; ++i) put_symbol(bytes, 0x800 + i * std::size_t{18}, 4, i, 1);
  put(bytes, bytes.size() + 4, std::string(4000, 'n') + '\0');
  std::size_t taken = 0;
  for (const trace::SymbolEntry& entry : read_symbols(bytes)) taken += entry.name.size();
  EXPECT_GT(taken, 0u);
  EXPECT_LE(taken, 4 * bytes.size());
}

// The largest possible section table is not searched for each symbol.
TEST(Pe, ManySectionsAreFast) {
  constexpr std::uint32_t kSections = 65535;
  constexpr std::uint32_t kSymbols = 100'000;
  constexpr std::uint32_t kBytes = 16;  // of each section, the last one first
  ByteVector bytes = small_file();
  bytes.resize(0x188);
  put(bytes, 0x86, kSections, 2);
  put(bytes, bytes.size() + kSections * std::size_t{40}, 0, 4);
  for (std::uint32_t i = 0; i < kSections; ++i)
    put_section(bytes, 0x188 + i * std::size_t{40}, "s", kBytes, (kSections - i) * 0x1000, kBytes, 0x200);
  put(bytes, 0x80 + 12, bytes.size(), 4);
  put(bytes, 0x80 + 16, kSymbols, 4);
  const std::size_t symbols = bytes.size();
  for (std::uint32_t i = 0; i < kSymbols; ++i)
    put_symbol(bytes, symbols + i * std::size_t{18}, 4, i % kBytes, kSections);
  put(bytes, bytes.size() + 4, std::string("name") + '\0');
  std::size_t found = 0;
  EXPECT_LT(formats::test::seconds_of([&] { found = read_symbols(bytes).size(); }), 2.0);
  EXPECT_EQ(found, std::size_t{kBytes});
}

TEST(Pe, SurvivesRandomBytes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    ByteVector bytes = small_file(round % 2 == 0);
    for (int i = 0; i < 4; ++i) {
      const std::size_t at = random() % bytes.size();
      bytes[at] = random() % 3 == 0 ? 0xff : static_cast<std::uint8_t>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    for (const trace::SymbolEntry& entry : pe_symbols(bytes)) EXPECT_LT(entry.file_offset, bytes.size());
    const TemporaryFile file(bytes);
    trace::TraceBundle bundle;
    if (!add_pe(bundle, file.path(), {}).ok()) continue;
    EXPECT_LE(bundle.files[0].build_id.size(), 64u);
  }
}

}  // namespace
}  // namespace ptkit::image
