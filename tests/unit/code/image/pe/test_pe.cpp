// Generated PE files and damaged files.
#include <gtest/gtest.h>

#include <random>

#include "base/ascii.h"
#include "code/image/files/code_file.h"
#include "code/image/files/segments.h"
#include "code/image/pe/pe.h"
#include "code/symbol/symbols.h"
#include "unit/support/makers/elf_maker.h"
#include "unit/support/makers/pe_maker.h"
#include "unit/support/seconds.h"
#include "unit/support/warned.h"

namespace ptkit::code::image {
namespace {

using test::ByteVector;
using test::TemporaryFile;

using test::kDataAddress;
using test::kDataOffset;
using test::kPeBase;
using test::kTextAddress;
using test::kTextOffset;
using test::put;
using test::put_chained;
using test::put_section;
using test::small_pe;

TEST(Pe, MapsSectionsAtTheLinkedBase) {
  const TemporaryFile file(small_pe());
  trace::TraceBundle bundle;
  const auto added = add_image(bundle, file.path(), {});
  ASSERT_TRUE(added.ok()) << added.failure().detail;
  ASSERT_EQ(bundle.code.size(), 2u);
  EXPECT_EQ(bundle.code[0].address, kPeBase + kTextAddress);
  EXPECT_EQ(bundle.code[0].size, 0x180u);  // padding of the file is not mapped
  EXPECT_EQ(bundle.code[0].file_offset, kTextOffset);
  EXPECT_EQ(bundle.code[0].bytes.bytes()[0], 0xc3);
  EXPECT_EQ(bundle.code[1].size, 0x200u);  // the rest is zeros
  ASSERT_EQ(bundle.files.size(), 1u);
  EXPECT_EQ(bundle.files[0].build_id, "3f2504e04f8911d39a0c0305e82c3301-1a");
}

// Without a PDB, time stamp and size in memory say which file it is, unless a linker left either out.
TEST(Pe, FilesWithoutAPdbHaveTimeStampAndSize) {
  const auto id_of = [](std::uint32_t stamp, std::uint32_t size, bool has_pdb) {
    auto bytes = small_pe();
    put(bytes, 0x80 + 8, stamp, 4);
    put(bytes, 0x80 + 24 + 56, size, 4);
    if (!has_pdb) put(bytes, 0x80 + 24 + 112 + 8 * 6, 0, 8);  // the debug directory
    const TemporaryFile file(bytes);
    trace::TraceBundle bundle;
    EXPECT_TRUE(add_image(bundle, file.path(), {}).ok());
    return bundle.files.at(0).build_id;
  };
  EXPECT_EQ(id_of(0x65a1b2c3, 0x4000, false), "65a1b2c3-4000");
  EXPECT_EQ(id_of(0x00000001, 0x4000, false), "00000001-4000");
  EXPECT_EQ(id_of(0x65a1b2c3, 0x4000, true), "3f2504e04f8911d39a0c0305e82c3301-1a");
  EXPECT_EQ(id_of(0x65a1b2c3, 0, false), "");
  EXPECT_EQ(id_of(0, 0x4000, false), "");
  EXPECT_EQ(id_of(0xffffffff, 0x4000, false), "");
}

TEST(Pe, SegmentsAreSectionsWithBytes) {
  const auto segments = file_segments(small_pe());
  ASSERT_EQ(segments.size(), 2u);
  EXPECT_EQ(segments[0].file_offset, kTextOffset);
  EXPECT_EQ(segments[0].rva, kTextAddress);
  EXPECT_TRUE(segments[0].executable);
  EXPECT_EQ(segments[1].size, 0x200u);
  EXPECT_EQ(segments[1].rva, kDataAddress);
  EXPECT_FALSE(segments[1].executable);
}

TEST(Pe, MapsAtGivenOrRecordedBase) {
  const TemporaryFile file(small_pe());
  const std::string name = file.path().substr(file.path().find_last_of('/') + 1);
  trace::TraceBundle bundle;
  bundle.files.push_back({"C:\\Other\\other.dll", "", {}, {}});
  bundle.files.push_back({base::ascii_upper("C:\\Windows\\" + name), "", {}, {}});
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
  const TemporaryFile file(small_pe());
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
  const ByteVector bytes = small_pe();
  const auto symbols = read_symbols(bytes);
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols[0].name, "first");
  EXPECT_EQ(symbols[0].file_offset, kTextOffset + 0x10);
  EXPECT_EQ(symbols[0].size, 0x20u);
  EXPECT_EQ(symbols[1].name, "a_long_name_of_coff");
  EXPECT_EQ(symbols[1].file_offset, kTextOffset + 0x40);
  EXPECT_EQ(symbols[1].size, 8u);
}

// Data are exported, too. Code of a later section, as PAGE of drivers, does not belong to them.
TEST(Pe, ExportsOfDataEndWithTheirSection) {
  ByteVector bytes = small_pe();
  put(bytes, kDataOffset + 44, kDataAddress + 0x1c0, 4);
  bytes.resize(0xb00, 0x90);
  put_section(bytes, 0x98 + 240 + 80, "PAGE", 0x100, 0x4000, 0x100, 0x900);
  put(bytes, 0x98 + 240 + 80 + 36, 0x6000'0020, 4);
  const TemporaryFile file(bytes);
  trace::TraceBundle bundle;
  ASSERT_TRUE(add_pe(bundle, file.path(), {}).ok());
  const symbol::Symbols symbols(std::make_shared<trace::TraceBundle>(bundle));
  EXPECT_FALSE(symbols.find(trace::kAnySpace, 0, kPeBase + 0x4010));
  const auto found = symbols.lookup("first");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].address, kPeBase + kDataAddress + 0x1c0);
  EXPECT_EQ(found[0].size, 0x40U);
}

TEST(Pe, Reads32BitFiles) {
  const TemporaryFile file(small_pe(false));
  trace::TraceBundle bundle;
  ASSERT_TRUE(add_pe(bundle, file.path(), {}).ok());
  EXPECT_EQ(bundle.code[0].address, 0x400000u + kTextAddress);
  const auto symbols = pe_symbols(small_pe(false));
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols[0].size, 0u);  // no table of functions
}

// "first 410 +20, name 440 +8": names, file offsets and sizes.
std::string symbols_of(const ByteVector& bytes) {
  std::string text;
  for (const trace::SymbolEntry& one : pe_symbols(bytes)) {
    char position[48];
    std::snprintf(position, sizeof position, " %x +%x", static_cast<unsigned>(one.file_offset),
                  static_cast<unsigned>(one.size));
    text += (text.empty() ? "" : ", ") + one.name + position;
  }
  return text;
}

TEST(Pe, NamesFunctionsOfStrippedFilesByRva) {
  ByteVector bytes = small_pe();
  put(bytes, 0x80 + 12, 0, 4);  // no COFF symbols
  EXPECT_EQ(symbols_of(bytes), "first 410 +20, sub_1040 440 +8");
  // Code that continues a function has its name where it follows it, and a name of its own elsewhere.
  put(bytes, kDataOffset + 0x94, put_chained(bytes, 0x98, kTextAddress + 0x10), 4);
  EXPECT_EQ(symbols_of(bytes), "first 410 +20, sub_1040 440 +8");
  put(bytes, kDataOffset + 0x8c, kTextAddress + 0x30, 4);
  EXPECT_EQ(symbols_of(bytes), "first 410 +38");
  put(bytes, kDataOffset + 0x94, kDataAddress + 0x81, 4);  // an entry instead of UNWIND_INFO
  EXPECT_EQ(symbols_of(bytes), "first 410 +38");
}

TEST(Pe, ExportsComeBeforeCoffNames) {
  ByteVector bytes = small_pe();
  put(bytes, 0x800 + 8, 0x10, 4);  // the address of the export
  EXPECT_EQ(symbols_of(bytes), "first 410 +20, a_long_name_of_coff 410 +20, sub_1040 440 +8");
}

TEST(Pe, Names32BitFunctionsWithoutDecoration) {
  const auto named = [](const std::string& name) {
    ByteVector bytes = small_pe(false);
    put(bytes, 0x800 + 58, name + '\0');
    const std::string all = symbols_of(bytes);
    constexpr std::string_view kFirst = "first 410 +0, ";
    EXPECT_TRUE(all.starts_with(kFirst)) << all;
    return all.substr(kFirst.size());
  };
  EXPECT_EQ(named("_acosq"), "acosq 440 +0, _acosq 440 +0");
  EXPECT_EQ(named("_work@12"), "work 440 +0, _work@12 440 +0");
  EXPECT_EQ(named("@fast@8"), "fast 440 +0, @fast@8 440 +0");
  EXPECT_EQ(named("vector@@16"), "vector 440 +0, vector@@16 440 +0");
  EXPECT_EQ(named("__Z3foov"), "_Z3foov 440 +0, __Z3foov 440 +0");
  EXPECT_EQ(named("?f@@YAXXZ"), "?f@@YAXXZ 440 +0");
  EXPECT_EQ(named("plain"), "plain 440 +0");
  EXPECT_EQ(named("_"), "_ 440 +0");
}

// Exports by one rule with COFF names; "_open" is a name in C, as linkers leave out the "_" of cdecl.
TEST(Pe, Names32BitExportsWithoutDecoration) {
  const auto named = [](const std::string& name, bool is_64_bit = false) {
    ByteVector bytes = small_pe(is_64_bit);
    put(bytes, 0x80 + 12, 0, 4);  // no COFF symbols
    put(bytes, kDataOffset + 0x70, name + '\0');
    return symbols_of(bytes);
  };
  EXPECT_EQ(named("go@8"), "go 410 +0, go@8 410 +0");
  EXPECT_EQ(named("_go@8"), "go 410 +0, _go@8 410 +0");
  EXPECT_EQ(named("@go@8"), "go 410 +0, @go@8 410 +0");
  EXPECT_EQ(named("_open"), "_open 410 +0");
  EXPECT_EQ(named("_open@x"), "_open@x 410 +0");
  EXPECT_EQ(named("go@8", true), "go@8 410 +20, sub_1040 440 +8");
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
  ByteVector bytes = small_pe();
  EXPECT_TRUE(has(failure_of(ByteVector(10, 'x')), "does not begin with MZ"));
  put(bytes, 0x84, 0xaa64, 2);
  EXPECT_TRUE(has(failure_of(bytes), "another processor"));
  bytes = small_pe();
  bytes.resize(0x500);
  EXPECT_TRUE(has(failure_of(bytes), "a section ends after the end of the file"));
  bytes.resize(0x150);
  EXPECT_TRUE(has(failure_of(bytes), "is cut"));
  bytes = small_pe();
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
  ByteVector bytes = small_pe();
  bytes.resize(0x800);
  put(bytes, 0x80 + 16, kCount, 4);
  for (std::uint32_t i = 0; i < kCount; ++i) put_symbol(bytes, 0x800 + i * std::size_t{18}, 4, i, 1);
  std::string names(4001, 'n');
  names.back() = '\0';
  put(bytes, bytes.size() + 4, names);
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
  ByteVector bytes = small_pe();
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
  EXPECT_LT(ptkit::test::seconds_of([&] { found = read_symbols(bytes).size(); }), 2.0);
  EXPECT_EQ(found, std::size_t{kBytes});
}

TEST(Pe, SurvivesRandomBytes) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 3000; ++round) {
    ByteVector bytes = small_pe(round % 2 == 0);
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
}  // namespace ptkit::code::image
