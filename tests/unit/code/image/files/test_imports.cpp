// Functions behind the slots that branches of PE files read.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "code/image/files/imports.h"
#include "unit/support/makers/pe_maker.h"
#include "unit/support/seconds.h"

namespace ptkit::code::image {
namespace {

using test::ByteVector;
using test::kTextAddress;
using test::put;
using test::put_imports;
using test::small_pe;

constexpr std::uint32_t kSlot = 0x2150;  // the first one
constexpr std::uint32_t kRva = kTextAddress + 0x10;
constexpr std::uint64_t kLoad = 0x7ff6'0000'0000;

// CALL or JMP through the memory at `displacement`, relative to the next instruction or absolute.
ByteVector branch(std::uint8_t second, std::uint32_t displacement, ByteVector prefix = {}) {
  ByteVector code = std::move(prefix);
  const std::size_t at = code.size();
  code.resize(at + 6);
  code[at] = 0xff;
  code[at + 1] = second;
  put(code, at + 2, displacement, 4);
  return code;
}

ByteVector file_with_imports(bool wide, unsigned number = 1) {
  ByteVector bytes = small_pe(wide);
  put_imports(bytes, wide, number);
  return bytes;
}

TEST(Imports, NamesCallsAndJumpsThroughSlots) {
  for (const unsigned number : {1U, 13U}) {
    const ByteVector bytes = file_with_imports(true, number);
    const Imports imports(bytes);
    const auto called = [&](const ByteVector& code) { return imports.called(code, kRva, kLoad + kRva).name; };
    EXPECT_EQ(called(branch(0x15, kSlot - kRva - 6)), "ExpInterlockedPopEntrySList");
    EXPECT_EQ(called(branch(0x25, kSlot + 8 - kRva - 6)), "WS2_32!Ordinal23");
    EXPECT_EQ(called(branch(0x25, kSlot - kRva - 7, {0x48})), "ExpInterlockedPopEntrySList");
    EXPECT_EQ(called(branch(0x15, kSlot - kRva - 8, {0xf2, 0x48})), "ExpInterlockedPopEntrySList");
    EXPECT_EQ(called(branch(0x15, kSlot + 16 - kRva - 6)), "");  // behind the slots
    EXPECT_EQ(called(branch(0x35, kSlot - kRva - 6)), "");       // PUSH
    EXPECT_EQ(imports.called(branch(0x15, kSlot - kRva - 6), kRva, kLoad + kRva).module, "WS2_32.dll");
    EXPECT_EQ(called({0xff, 0x15, 0x00}), "");
    EXPECT_EQ(called({}), "");
  }
}

// A dump has addresses in the slots. Without a table of names they are no numbers of functions, though their
// highest bit is set in the kernel.
TEST(Imports, AddressesInSlotsAreNoOrdinals) {
  for (const bool wide : {true, false}) {
    ByteVector bytes = file_with_imports(wide);
    put(bytes, test::kDataOffset + 0x100, 0, 4);  // no table of names
    const std::size_t width = wide ? 8 : 4;
    put(bytes, test::kDataOffset + 0x150, wide ? 0xffff'f803'1234'5678 : 0x804d'9050, width);
    const Imports imports(bytes);
    const std::uint32_t operand = wide ? kSlot - kRva - 6 : 0x400000 + kSlot;
    EXPECT_EQ(imports.called(branch(0x15, operand), kRva, 0x400000 + kRva).name, "");
    put(bytes, test::kDataOffset + 0x150, std::uint64_t{1} << (8 * width - 1) | 23, width);
    EXPECT_EQ(Imports(bytes).called(branch(0x15, operand), kRva, 0x400000 + kRva).name, "WS2_32!Ordinal23");
  }
}

TEST(Imports, Knows32BitCodeBeforeAndAfterRelocation) {
  const ByteVector bytes = file_with_imports(false);
  const Imports imports(bytes);
  EXPECT_EQ(imports.called(branch(0x15, 0x400000 + kSlot), kRva, 0x10000000 + kRva).name,
            "ExpInterlockedPopEntrySList");
  EXPECT_EQ(imports.called(branch(0x15, 0x10000000 + kSlot + 4), kRva, 0x10000000 + kRva).name,
            "WS2_32!Ordinal23");
  EXPECT_EQ(imports.called(branch(0x15, 0x20000000 + kSlot), kRva, 0x10000000 + kRva).name, "");
}

TEST(Imports, OtherFilesHaveNone) {
  EXPECT_TRUE(Imports(base::Bytes{}).empty());
  EXPECT_TRUE(Imports(small_pe()).empty());
  EXPECT_FALSE(Imports(file_with_imports(true)).empty());
}

TEST(Imports, SurvivesRandomBytesAndEndlessTables) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    ByteVector bytes = file_with_imports(round % 2 == 0);
    for (int i = 0; i < 4; ++i) bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    for (int i = 0; i < 4; ++i) bytes[0x700 + random() % 0x80] = static_cast<std::uint8_t>(random());
    const Imports imports(bytes);
    EXPECT_LE(imports.called(branch(0x15, kSlot - kRva - 6), kRva, kLoad + kRva).name.size(), 4096u);
  }
}

// Versions of symbols 1 to 3: `puts` has one of libc.so.6, `own` none.
template <typename Maker>
void add_versions(Maker& maker, std::uint16_t symbols, std::uint16_t names) {
  ByteVector needed;
  test::append(needed, Elf64_Verneed{1, 1, 1, sizeof(Elf64_Verneed), 0});
  test::append(needed, Elf64_Vernaux{0, 0, 2, 11, 0});
  maker.add({".gnu.version_r", SHT_GNU_verneed, SHF_ALLOC, 0x40'0700, needed, names, 0, 0});
  ByteVector versions;
  for (const std::uint16_t one : std::array<std::uint16_t, 4>{0, 0x8002, 1, 1}) test::append(versions, one);
  maker.add({".gnu.version", SHT_GNU_versym, SHF_ALLOC, 0x40'0780, versions, symbols, 2, 0});
}

// A program that takes `puts` and `exit` from a library, and defines `own` itself.
template <typename Maker, typename Relocation>
ByteVector elf_with_slots(std::uint32_t type) {
  Maker maker;
  ByteVector code(0x40, 0x90);
  maker.add({".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x40'1000, code, 0, 0, 0});
  const auto& text = maker.sections[0];
  maker.segments.push_back({PT_LOAD, 0x40'1000, text.offset, text.contents.size(), 0, 0x1000});
  maker.add({".got.plt", SHT_PROGBITS, SHF_ALLOC, 0x40'3000, ByteVector(0x40), 0, 0, 0});
  const auto table = maker.add_symbols(SHT_DYNSYM, {{"puts", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
                                                    {"exit", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
                                                    {"own", 0x40'1000, 8, STT_FUNC, STB_GLOBAL, 1}});
  ByteVector relocations;
  const std::array<std::uint32_t, 3> types{R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT};
  for (std::uint32_t i = 0; i < types.size(); ++i) {
    Relocation one{};
    one.r_offset = static_cast<decltype(one.r_offset)>(0x40'3018 + std::uint64_t{i} * 8);
    const std::uint64_t symbol = i + 1;
    one.r_info = static_cast<decltype(one.r_info)>(sizeof one.r_info == 8 ? symbol << 32U | types[i]
                                                                          : symbol << 8U | types[i]);
    test::append(relocations, one);
  }
  const ByteVector names{0, 'l', 'i', 'b', 'c', '.', 's', 'o', '.', '6', 0, 'V', 0};
  const auto strings = maker.add({".version_names", SHT_STRTAB, 0, 0, names, 0, 0, 0});
  add_versions(maker, table, strings);
  maker.add({".rel", type, SHF_ALLOC, 0x40'0800, relocations, table, sizeof(Relocation), 0});
  return maker.make();
}

std::string called(const Imports& imports, std::uint64_t rva, std::initializer_list<std::uint8_t> opcode,
                   std::uint64_t operand) {
  ByteVector code(opcode);
  put(code, code.size(), operand, 4);
  return std::string(imports.called(code, rva, 0x5555'0000'0000 + rva).name);
}

TEST(Imports, NamesSlotsOfElfFiles) {
  const ByteVector file = elf_with_slots<test::Elf64Maker, Elf64_Rela>(SHT_RELA);
  const Imports imports(file);
  // RVAs count from the page of the first segment, 0x401000.
  EXPECT_EQ(called(imports, 0x10, {0xff, 0x25}, 0x2018 - 0x16), "puts");
  EXPECT_EQ(called(imports, 0x10, {0xff, 0x15}, 0x2020 - 0x16), "exit");
  EXPECT_EQ(called(imports, 0x10, {0xf2, 0xff, 0x25}, 0x2018 - 0x17), "puts");
  EXPECT_EQ(called(imports, 0x10, {0xff, 0x25}, 0x2028 - 0x16), "");  // its own function
  EXPECT_EQ(called(imports, 0x10, {0xff, 0xa3}, 0x18), "");           // EBX is of 32-bit code
  EXPECT_EQ(imports.called(branch(0x25, 0x2018 - 0x16), 0x10, 0x10).module, "libc.so.6");
  EXPECT_EQ(imports.called(branch(0x25, 0x2020 - 0x16), 0x10, 0x10).module, "");  // without a version
  trace::CodeRegion region;
  region.size = 0x40;
  region.file_offset = test::Elf64Maker::kContents;
  EXPECT_EQ(imports.rva_of(region, region.file_offset + 8), 8U);
}

// Lists of versions that go in circles, or beyond the file.
TEST(Imports, SurvivesDamagedVersions) {
  const ByteVector file = elf_with_slots<test::Elf64Maker, Elf64_Rela>(SHT_RELA);
  const Elf64_Verneed first{1, 1, 1, sizeof(Elf64_Verneed), 0};
  ByteVector needed;
  test::append(needed, first);
  const auto at = std::search(file.begin(), file.end(), needed.begin(), needed.end()) - file.begin();
  std::mt19937_64 random(5);
  for (int round = 0; round < 2000; ++round) {
    ByteVector bytes = file;
    for (int i = 0; i < 3; ++i)
      bytes[static_cast<std::size_t>(at) + random() % 40] = static_cast<std::uint8_t>(random() % 32);
    const Imports imports(bytes);
    EXPECT_EQ(called(imports, 0x10, {0xff, 0x25}, 0x2018 - 0x16), "puts");
    const auto stored = imports.encode();
    const auto read = Imports::decode(stored);
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->encode(), stored);
  }
}

TEST(Imports, NamesSlotsOf32BitElfFiles) {
  const ByteVector file = elf_with_slots<test::Elf32Maker, Elf32_Rel>(SHT_REL);
  const Imports imports(file);
  EXPECT_EQ(called(imports, 0x10, {0xff, 0xa3}, 0x18), "puts");  // by EBX, the address of .got.plt
  EXPECT_EQ(called(imports, 0x10, {0xff, 0x93}, 0x20), "exit");
  EXPECT_EQ(called(imports, 0x10, {0xff, 0x25}, 0x40'3018), "puts");
}

// Sections of relocations that share one table.
TEST(Imports, TakeLittleTimeForRepeatedRelocations) {
  constexpr std::size_t kSections = 60'000;
  ByteVector relocations;
  for (std::uint64_t i = 0; i < 40'000; ++i) test::append(relocations, Elf64_Rela{i, R_X86_64_JUMP_SLOT, 0});
  test::Elf64Maker maker;
  maker.segments.push_back({PT_LOAD, 0x40'0000, 0, 0x1000, 0x1000});
  const auto table = maker.add_symbols(SHT_DYNSYM, {{"puts", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF}});
  const auto number =
      maker.add({".rel", SHT_RELA, SHF_ALLOC, 0x40'0800, relocations, table, sizeof(Elf64_Rela)});
  ByteVector file = maker.make();
  Elf64_Ehdr header;
  std::memcpy(&header, file.data(), sizeof header);
  const auto headers = static_cast<std::ptrdiff_t>(header.e_shoff);
  const ByteVector all(file.begin() + headers, file.end());
  header.e_shoff = file.size();
  const std::size_t before = header.e_shnum;
  header.e_shnum = static_cast<std::uint16_t>(kSections);
  std::memcpy(file.data(), &header, sizeof header);
  file.insert(file.end(), all.begin(), all.end());
  const auto row = all.begin() + static_cast<std::ptrdiff_t>(number * sizeof(Elf64_Shdr));
  for (std::size_t i = before; i < kSections; ++i) file.insert(file.end(), row, row + sizeof(Elf64_Shdr));
  EXPECT_LT(ptkit::test::seconds_of([&] { static_cast<void>(Imports(file)); }), 5.0);
}

}  // namespace
}  // namespace ptkit::code::image
