// Tables of Go's functions: each version, both sizes of pointers, in ELF and PE files, and damaged ones.
#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "code/image/files/code_file.h"
#include "code/image/go_table.h"
#include "unit/support/makers/elf_maker.h"
#include "unit/support/makers/go_table_maker.h"
#include "unit/support/makers/pe_maker.h"
#include "unit/support/seconds.h"

namespace ptkit::code::image {
namespace {

using test::ByteVector;
using test::GoTableMaker;

constexpr std::uint64_t kText = 0x40'1000;
constexpr std::uint64_t kTable = 0x40'2000;
constexpr std::uint64_t kCode = SHF_ALLOC | SHF_EXECINSTR;

const std::vector<GoTableMaker::Function> kFunctions{
    {"runtime.text", 0x10}, {"main.main", 0x20}, {"main.F[...]", 0x10}};

using Symbols = std::vector<std::tuple<std::string, std::uint64_t, std::uint64_t>>;
Symbols symbols_of(base::Bytes file) {
  Symbols found;
  for (const trace::SymbolEntry& one : read_symbols(file))
    found.emplace_back(one.name, one.file_offset, one.size);
  return found;
}

template <typename Maker>
Maker program(const GoTableMaker& table, const char* section = ".gopclntab") {
  Maker maker;
  maker.add({".text", SHT_PROGBITS, kCode, kText, ByteVector(0x40, 0x90), 0, 0, 0});
  maker.add({section, SHT_PROGBITS, SHF_ALLOC, kTable, table.make(), 0, 0, 0});
  ByteVector pointer;  // the begin of `moduledata`
  test::put(pointer, 0, kTable, table.width);
  maker.add({".noptrdata", SHT_PROGBITS, SHF_ALLOC, 0x40'3000, pointer, 0, 0, 0});
  for (const auto& one : maker.sections)
    maker.segments.push_back(
        {PT_LOAD, one.address, one.offset, one.contents.size(), 0, 0x1000,
         (one.flags & SHF_EXECINSTR) != 0 ? std::uint32_t{PF_R | PF_X} : std::uint32_t{PF_R}});
  return maker;
}

Symbols expected(std::uint64_t offset) {
  return {{"runtime.text", offset, 0x10},
          {"main.main", offset + 0x10, 0x20},
          {"main.F[...]", offset + 0x30, 0x10}};
}

class GoTable : public testing::TestWithParam<std::uint8_t> {};

TEST_P(GoTable, NamesFunctionsOfStrippedPrograms) {
  for (const std::size_t width : {std::size_t{8}, std::size_t{4}}) {
    const GoTableMaker table{.magic = GetParam(), .width = width, .functions = kFunctions};
    const ByteVector file =
        width == 8 ? program<test::Elf64Maker>(table).make() : program<test::Elf32Maker>(table).make();
    EXPECT_EQ(symbols_of(file), expected(test::Elf64Maker::kContents)) << width;
  }
}

TEST_P(GoTable, IsFoundByItsMagicWithoutSectionsOfThatName) {
  const GoTableMaker table{.magic = GetParam(), .functions = kFunctions};
  auto maker = program<test::Elf64Maker>(table, ".data.rel.ro");
  EXPECT_TRUE(symbols_of(maker.make()).empty());  // nothing says that the program is of Go
  maker.add({".go.buildinfo", SHT_PROGBITS, SHF_ALLOC, 0x40'4000, ByteVector(16), 0, 0, 0});
  EXPECT_EQ(symbols_of(maker.make()), expected(test::Elf64Maker::kContents));
}

TEST_P(GoTable, IsFoundWithoutSectionHeaders) {
  ByteVector file = program<test::Elf64Maker>({.magic = GetParam(), .functions = kFunctions}).make();
  test::put(file, offsetof(Elf64_Ehdr, e_shoff), 0, 8);
  test::put(file, offsetof(Elf64_Ehdr, e_shnum), 0, 2);
  test::put(file, offsetof(Elf64_Ehdr, e_shstrndx), 0, 2);
  EXPECT_EQ(symbols_of(file), expected(test::Elf64Maker::kContents));
}

TEST_P(GoTable, NamesFunctionsOfPeFiles) {
  const GoTableMaker table{
      .magic = GetParam(), .text = test::kPeBase + test::kTextAddress + 0x100, .functions = kFunctions};
  ByteVector file = test::small_pe();
  const ByteVector bytes = table.make();
  std::copy(bytes.begin(), bytes.end(), file.begin() + test::kDataOffset + 0xE0);
  test::put(file, test::kDataOffset + 0x1C0, test::kPeBase + test::kDataAddress + 0xE0, 8);
  const Symbols found = symbols_of(file);
  for (const auto& one : expected(test::kTextOffset + 0x100))
    EXPECT_NE(std::ranges::find(found, one), found.end()) << std::get<0>(one);
  EXPECT_NE(std::ranges::find(
                found, std::tuple("first", std::uint64_t{test::kTextOffset + 0x10}, std::uint64_t{0x20})),
            found.end());
}

TEST_P(GoTable, SurvivesDamage) {
  const ByteVector good = program<test::Elf64Maker>({.magic = GetParam(), .functions = kFunctions}).make();
  std::mt19937 random(7);
  for (int round = 0; round < 3000; ++round) {
    ByteVector file = good;
    for (int i = 0; i < 3; ++i)
      file[test::Elf64Maker::kContents + 0x40 + random() % 0x100] = static_cast<std::uint8_t>(random());
    for (const trace::SymbolEntry& one : read_symbols(file)) {
      ASSERT_LT(one.file_offset, file.size());
      ASSERT_LE(one.size, file.size() - one.file_offset);
      ASSERT_FALSE(one.name.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Versions, GoTable, testing::Values(0xFB, 0xFA, 0xF0, 0xF1));

// Go 1.26 has no address in the table: `moduledata` has it.
TEST(GoTables, TakeTheTextAddressFromTheModule) {
  auto maker = program<test::Elf64Maker>({.has_text = false, .functions = kFunctions});
  EXPECT_TRUE(symbols_of(maker.make()).empty());
  ByteVector module(24 * 8);
  test::put(module, 0, kTable, 8);
  test::put(module, 20 * 8, kText, 8);
  test::put(module, 22 * 8, kText, 8);
  maker.add({".go.module", SHT_PROGBITS, SHF_ALLOC, 0x40'4000, module, 0, 0, 0});
  EXPECT_EQ(symbols_of(maker.make()), expected(test::Elf64Maker::kContents));
}

// Position-independent programs that another linker made have pointers in relocations alone.
TEST(GoTables, TakePointersFromRelocations) {
  auto maker = program<test::Elf64Maker>({.has_text = false, .functions = kFunctions});
  maker.type = ET_DYN;
  constexpr std::uint64_t kModule = 0x40'4000;
  constexpr std::uint64_t kRela = 0x40'5000;
  ByteVector rela;
  for (const auto& [at, target] : {std::pair(0, kTable), {20, kText}, {22, kText}})
    test::append(rela, Elf64_Rela{kModule + static_cast<std::uint64_t>(at) * 8, R_X86_64_RELATIVE,
                                  static_cast<Elf64_Sxword>(target)});
  ByteVector dynamic;
  test::append(dynamic, Elf64_Dyn{DT_RELA, {kRela}});
  test::append(dynamic, Elf64_Dyn{DT_RELASZ, {rela.size()}});
  const auto add = [&](std::uint32_t type, std::uint64_t address, ByteVector bytes) {
    maker.add({".data", SHT_PROGBITS, SHF_ALLOC, address, std::move(bytes), 0, 0, 0});
    const auto& added = maker.sections.back();
    maker.segments.push_back({type, address, added.offset, added.contents.size(), 0, 8, PF_R});
  };
  add(PT_LOAD, kModule, ByteVector(24 * 8));
  add(PT_LOAD, kRela, rela);
  add(PT_DYNAMIC, 0x40'6000, dynamic);
  EXPECT_EQ(symbols_of(maker.make()), expected(test::Elf64Maker::kContents));
}

TEST(GoTables, LeaveNamesOfSymbolTables) {
  auto maker = program<test::Elf64Maker>({.functions = kFunctions});
  maker.add_symbols(SHT_SYMTAB, {{"main.main", kText + 0x10, 0x18}, {"main.F[int]", kText + 0x30, 8}});
  const std::uint64_t offset = test::Elf64Maker::kContents;
  EXPECT_EQ(symbols_of(maker.make()), (Symbols{{"runtime.text", offset, 0x10},
                                               {"main.main", offset + 0x10, 0x18},
                                               {"main.F[int]", offset + 0x30, 8}}));
}

// A program that another one has as a file of its own (//go:embed): its table comes first.
TEST(GoTables, AreNotThoseOfEmbeddedPrograms) {
  const GoTableMaker embedded{.functions = {{"other.main", 0x40}}};
  for (const bool has_own : {true, false}) {
    auto maker = program<test::Elf64Maker>({.functions = kFunctions}, ".data.rel.ro");
    maker.add({".go.buildinfo", SHT_PROGBITS, SHF_ALLOC, 0x40'4000, ByteVector(16), 0, 0, 0});
    maker.add({".rodata", SHT_PROGBITS, SHF_ALLOC, 0x40'1800, embedded.make(), 0, 0, 0});
    if (!has_own) maker.sections[2].contents.assign(8, 0);
    EXPECT_EQ(symbols_of(maker.make()), has_own ? expected(test::Elf64Maker::kContents) : Symbols{});
  }
}

// Parts that have the same bytes.
TEST(GoTables, TakeLittleTimeForRepeatedParts) {
  const ByteVector bytes(std::size_t{1} << 20U);
  LoadedProgram program;
  for (std::uint64_t i = 0; i < 20'000; ++i) program.parts.push_back({"", i << 20U, 0, bytes, false});
  EXPECT_LT(ptkit::test::seconds_of([&] { EXPECT_TRUE(read_go_functions(program).empty()); }), 1.0);
}

// Headers of which each begins a table of as many functions as fit.
TEST(GoTables, TakeLittleTimeForManyHeaders) {
  LoadedProgram program;
  ByteVector bytes(std::size_t{16} << 20U);
  for (std::size_t at = 0; at + 80 <= bytes.size(); at += 16) {
    test::put(bytes, at, 0x0801'0000'FFFF'FFFBU, 8);
    test::put(bytes, at + 8, 0x8'0000, 8);
  }
  program.parts.push_back({".gopclntab", 0x1000, 0, bytes, false});
  EXPECT_LT(ptkit::test::seconds_of([&] { EXPECT_TRUE(read_go_functions(program).empty()); }), 2.0);
}

}  // namespace
}  // namespace ptkit::code::image
