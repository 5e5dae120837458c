// Generated ELF files, damaged files, and the test program itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "code/image/elf/elf.h"
#include "code/image/files/code_file.h"
#include "code/image/image.h"
#include "unit/support/makers/elf_maker.h"

namespace ptkit::code::image {
namespace {

using base::Status;
using test::build_id_note;
using test::ByteVector;
using test::Elf32Maker;
using test::Elf64Maker;
using test::TemporaryFile;

constexpr std::uint64_t kCodeFlags = SHF_ALLOC | SHF_EXECINSTR;

// A file with code at `address`, a build-id and a symbol table.
template <typename Maker>
Maker small_file(std::uint64_t address) {
  Maker maker;
  ByteVector code(64, 0x90);
  code[0] = 0xC3;
  maker.add({".text", SHT_PROGBITS, kCodeFlags, address, code, 0, 0, 0});
  maker.add({".note", SHT_NOTE, SHF_ALLOC, 0, build_id_note({0xAB, 0xCD, 0x01, 0x02}), 0, 0, 0});
  const auto& text = maker.sections[0];
  const auto& note = maker.sections[1];
  maker.segments.push_back({PT_LOAD, address, text.offset, text.contents.size(), 0x1000, 0x1000});
  maker.segments.push_back({PT_NOTE, 0, note.offset, note.contents.size(), 0, 4});
  maker.add_symbols(SHT_SYMTAB, {{"first", address, 16},
                                 {"label", address + 8, 0, STT_NOTYPE, STB_LOCAL},
                                 {"second", address + 32, 8, STT_FUNC, STB_LOCAL},
                                 {"datum", address + 40, 8, STT_OBJECT},
                                 {".Llocal", address + 44, 0, STT_NOTYPE, STB_LOCAL},
                                 {"elsewhere", address + 4096, 8},
                                 {"extern", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF}});
  return maker;
}

template <typename Maker>
class BothClasses : public testing::Test {};
using Makers = testing::Types<Elf32Maker, Elf64Maker>;
TYPED_TEST_SUITE(BothClasses, Makers);

TYPED_TEST(BothClasses, MapsSegments) {
  const ByteVector bytes = small_file<TypeParam>(0x0804'8000).make();
  const TemporaryFile file(bytes);
  trace::TraceBundle bundle;
  const auto index = add_elf(bundle, file.path(), {});
  ASSERT_TRUE(index.ok()) << index.failure().detail;
  EXPECT_EQ(index.value(), 0);
  ASSERT_EQ(bundle.files.size(), 1u);
  EXPECT_EQ(bundle.files[0].path, file.path());
  EXPECT_EQ(bundle.files[0].build_id, "abcd0102");
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), bundle.files[0].contents.bytes().begin()));
  ASSERT_EQ(bundle.code.size(), 1u);
  const trace::CodeRegion& region = bundle.code[0];
  EXPECT_EQ(region.address, 0x0804'8000u);
  EXPECT_EQ(region.size, 64u);
  EXPECT_EQ(region.file, 0);
  EXPECT_EQ(region.file_offset, Elf64Maker::kContents);
  ASSERT_EQ(region.bytes.size(), 64u);
  EXPECT_EQ(region.bytes.bytes()[0], 0xC3);
}

TYPED_TEST(BothClasses, RelocatesToTheLoadAddress) {
  auto maker = small_file<TypeParam>(0x0);
  maker.type = ET_DYN;
  maker.segments.push_back({PT_LOAD, 0x3000, Elf64Maker::kContents, 16});
  const TemporaryFile file(maker.make());
  trace::TraceBundle bundle;
  bundle.files.emplace_back();
  Placement placement;
  placement.load_address = 0x5555'0000'1000;
  placement.space = 3;
  placement.tsc_from = 10;
  placement.tsc_to = 20;
  const auto index = add_elf(bundle, file.path(), placement);
  ASSERT_TRUE(index.ok()) << index.failure().detail;
  EXPECT_EQ(index.value(), 1);
  ASSERT_EQ(bundle.code.size(), 2u);
  EXPECT_EQ(bundle.code[0].address, 0x5555'0000'1000u);
  EXPECT_EQ(bundle.code[1].address, 0x5555'0000'4000u);
  EXPECT_EQ(bundle.code[1].space, 3u);
  EXPECT_EQ(bundle.code[1].tsc_from, 10u);
  EXPECT_EQ(bundle.code[1].tsc_to, 20u);
  EXPECT_EQ(bundle.code[1].file, 1);
}

TEST(AddElf, RelocatesFromTheLowestSegment) {
  auto maker = small_file<Elf64Maker>(0x40'0240);  // its page begins at 0x400000
  maker.type = ET_DYN;
  const TemporaryFile file(maker.make());
  trace::TraceBundle bundle;
  Placement placement;
  placement.load_address = 0x7000'0000;  // the page was mapped here
  ASSERT_TRUE(add_elf(bundle, file.path(), placement).ok());
  EXPECT_EQ(bundle.code[0].address, 0x7000'0240u);
  placement.load_address = 0x7000'0240;  // the segment itself
  ASSERT_TRUE(add_elf(bundle, file.path(), placement).ok());
  EXPECT_EQ(bundle.code[1].address, 0x7000'0240u);
  placement.load_address = 0x1000;  // below where it was linked
  ASSERT_TRUE(add_elf(bundle, file.path(), placement).ok());
  EXPECT_EQ(bundle.code[2].address, 0x1240u);
}

// The bundle does not change, and the failure names the file and the defect.
void expect_bad(const ByteVector& bytes, const std::string& sentence) {
  const TemporaryFile file(bytes);
  trace::TraceBundle bundle;
  const auto index = add_elf(bundle, file.path(), {});
  ASSERT_FALSE(index.ok()) << sentence;
  EXPECT_EQ(index.failure().status, Status::BAD_FILE);
  EXPECT_NE(index.failure().detail.find(file.path()), std::string::npos) << index.failure().detail;
  EXPECT_NE(index.failure().detail.find(sentence), std::string::npos) << index.failure().detail;
  EXPECT_TRUE(bundle.files.empty());
  EXPECT_TRUE(bundle.code.empty());
  EXPECT_EQ(elf_build_id(bytes).size() % 2, 0u);
}

TEST(AddElf, RejectsUnusableFiles) {
  expect_bad({}, "no ELF file");
  expect_bad({'M', 'Z', 0, 0, 0, 0}, "no ELF file");
  const auto good = small_file<Elf64Maker>(0x1000);
  auto maker = good;
  maker.machine = EM_AARCH64;
  expect_bad(maker.make(), "machine 183, not for x86");
  maker = good;
  maker.segments.clear();
  expect_bad(maker.make(), "no loadable segment");
  maker = good;
  maker.segments[0].file_size = 0x10'0000;
  expect_bad(maker.make(), "segment 0 takes 0x100000 bytes at offset 0x200");
  maker = good;
  maker.segments[0].offset = ~std::uint64_t{0} - 4;
  expect_bad(maker.make(), "segment 0 takes");
  maker = good;
  maker.segments[0].memory_size = 8;
  expect_bad(maker.make(), "only 0x8 in memory");
  maker = good;
  maker.segments[0].address = ~std::uint64_t{0} - 4;
  expect_bad(maker.make(), "beyond the end of the address space");
}

TEST(AddElf, NamesMissingFiles) {
  trace::TraceBundle bundle;
  const auto index = add_elf(bundle, "/no/such/file", {});
  ASSERT_FALSE(index.ok());
  EXPECT_EQ(index.failure().status, Status::IO_ERROR);
  EXPECT_NE(index.failure().detail.find("/no/such/file"), std::string::npos);
}

TEST(AddElf, SurvivesDamage) {
  const ByteVector good = small_file<Elf64Maker>(0x1000).make();
  for (std::size_t size = 0; size < good.size(); ++size) {  // cut
    const base::Bytes cut = base::Bytes(good).first(size);
    (void)read_symbols(cut);
    (void)elf_build_id(cut);
  }
  std::mt19937_64 random(7);
  for (int round = 0; round < 20000; ++round) {
    ByteVector bytes = round % 2 == 0 ? good : small_file<Elf32Maker>(0x1000).make();
    for (int flips = 0; flips < 4; ++flips)
      bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    for (const auto& symbol : read_symbols(bytes)) ASSERT_LE(symbol.file_offset, bytes.size());
    (void)elf_build_id(bytes);
  }
}

TYPED_TEST(BothClasses, ReadsSymbols) {
  const auto symbols = read_symbols(small_file<TypeParam>(0x40'1000).make());
  ASSERT_EQ(symbols.size(), 3u);
  constexpr auto kStart = Elf64Maker::kContents;
  EXPECT_EQ(symbols[0].name, "first");
  EXPECT_EQ(symbols[0].file_offset, kStart);
  EXPECT_EQ(symbols[0].size, 16u);
  EXPECT_EQ(symbols[1].name, "label");
  EXPECT_EQ(symbols[1].file_offset, kStart + 8);
  EXPECT_EQ(symbols[1].size, 0u);
  EXPECT_EQ(symbols[2].name, "second");
  EXPECT_EQ(symbols[2].file_offset, kStart + 32);
}

TEST(ReadSymbols, SortsBestNamesFirstAndDropsDuplicates) {
  auto maker = small_file<Elf64Maker>(0x1000);
  maker.sections.resize(2);
  const std::vector<test::ElfSymbol> names = {{"__internal", 0x1000, 4},
                                              {"weak", 0x1000, 4, STT_FUNC, STB_WEAK},
                                              {"local", 0x1000, 4, STT_FUNC, STB_LOCAL},
                                              {"a_label", 0x1000, 0, STT_NOTYPE},
                                              {"public_name", 0x1000, 4}};
  maker.add_symbols(SHT_SYMTAB, names);
  maker.add_symbols(SHT_DYNSYM, {names[1], names[4]});
  const auto symbols = read_symbols(maker.make());
  std::vector<std::string> found;
  for (const auto& symbol : symbols) found.push_back(symbol.name);
  EXPECT_EQ(found, (std::vector<std::string>{"public_name", "weak", "__internal", "local", "a_label"}));
}

TEST(ReadSymbols, LimitsMemoryOfSharedNames) {
  constexpr std::size_t kLong = 100'000;
  Elf64Maker maker;
  maker.type = ET_REL;
  maker.add({".text", SHT_PROGBITS, kCodeFlags, 0, ByteVector(0x1000, 0x90), 0, 0, 0});
  std::vector<test::ElfSymbol> symbols{{std::string(kLong, 'n'), 0, 1}};
  for (std::uint64_t at = 1; at < 0x1000; ++at) symbols.push_back({"", at, 1});
  const auto table = maker.add_symbols(SHT_SYMTAB, symbols);
  ByteVector& rows = maker.sections[table - 1U].contents;
  for (std::size_t row = sizeof(Elf64_Sym); row < rows.size(); row += sizeof(Elf64_Sym)) {
    constexpr Elf64_Word kFirstName = 1;
    std::memcpy(&rows[row], &kFirstName, sizeof kFirstName);
  }
  const ByteVector bytes = maker.make();
  std::size_t taken = 0;
  for (const auto& symbol : read_symbols(bytes)) taken += symbol.name.size();
  EXPECT_GE(taken, kLong);
  EXPECT_LE(taken, 4 * bytes.size());
}

TEST(ReadSymbols, ObjectFileValuesAreRelativeToSections) {
  Elf64Maker maker;
  maker.type = ET_REL;
  maker.add({".text", SHT_PROGBITS, kCodeFlags, 0, ByteVector(32, 0x90), 0, 0, 0});
  maker.add({".text.b", SHT_PROGBITS, kCodeFlags, 0, ByteVector(32, 0x90), 0, 0, 0});
  maker.add_symbols(SHT_SYMTAB, {{"a", 4, 4, STT_FUNC, STB_GLOBAL, 1}, {"b", 4, 4, STT_FUNC, STB_GLOBAL, 2}});
  const std::uint64_t second = maker.sections[1].offset;
  const auto symbols = read_symbols(maker.make());
  ASSERT_EQ(symbols.size(), 2u);
  EXPECT_EQ(symbols[1].name, "b");
  EXPECT_EQ(symbols[1].file_offset, second + 4);
}

// A .plt with the common stub and two stubs. Each jumps through a GOT slot with a relocation.
TEST(ReadSymbols, NamesPltStubsByRelocation) {
  constexpr std::uint64_t kPlt = 0x1000;
  constexpr std::uint64_t kSlots = 0x4000;
  Elf64Maker maker;
  ByteVector code(48, 0xCC);
  for (std::uint64_t i = 0; i < 3; ++i) {
    // The second stub begins with ENDBR64 and BND, as in files with indirect branch tracking.
    const std::uint64_t at = i * 16 + (i == 2 ? 5 : 0);
    if (i == 2) std::copy_n(ByteVector{0xF3, 0x0F, 0x1E, 0xFA, 0xF2}.begin(), 5, code.begin() + 32);
    code[at] = 0xFF;
    code[at + 1] = 0x25;
    const auto displacement = static_cast<std::int32_t>(kSlots + i * 8 - (kPlt + at + 6));
    std::memcpy(&code[at + 2], &displacement, 4);
  }
  maker.add({".plt", SHT_PROGBITS, kCodeFlags, kPlt, code, 0, 16, 0});
  const std::uint64_t offset = maker.sections[0].offset;
  maker.segments.push_back({PT_LOAD, kPlt, offset, code.size()});
  const auto symbols = maker.add_symbols(
      SHT_DYNSYM, {{"puts", 0, 0, STT_FUNC, STB_GLOBAL, 0}, {"exit", 0, 0, STT_FUNC, STB_GLOBAL, 0}});
  ByteVector relocations;
  test::append(relocations, Elf64_Rela{kSlots + 8, ELF64_R_INFO(2, R_X86_64_JUMP_SLOT), 0});
  test::append(relocations, Elf64_Rela{kSlots + 16, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0});
  maker.add({".rela.plt", SHT_RELA, 0, 0, relocations, symbols, sizeof(Elf64_Rela), 0});
  const auto found = read_symbols(maker.make());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "exit@plt");
  EXPECT_EQ(found[0].file_offset, offset + 16);
  EXPECT_EQ(found[0].size, 16u);
  EXPECT_EQ(found[1].name, "puts@plt");
  EXPECT_EQ(found[1].file_offset, offset + 32);
}

// The C library calls its own memcpy() by a stub, as an IFUNC finds the function for the processor.
TEST(ReadSymbols, NamesPltStubsByTheirResolver) {
  constexpr std::uint64_t kPlt = 0x1000;
  constexpr std::uint64_t kSlot = 0x4000;
  Elf64Maker maker;
  ByteVector code(32, 0x90);
  std::copy_n(ByteVector{0xFF, 0x25, 0xFA, 0x2F, 0x00, 0x00}.begin(), 6, code.begin());  // JMP [RIP + 0x2FFA]
  maker.add({".plt", SHT_PROGBITS, kCodeFlags, kPlt, code, 0, 16, 0});
  maker.segments.push_back({PT_LOAD, kPlt, maker.sections[0].offset, code.size()});
  const auto symbols = maker.add_symbols(SHT_DYNSYM, {{"_alias", kPlt + 16, 4, STT_GNU_IFUNC, STB_WEAK},
                                                      {"copy", kPlt + 16, 4, STT_GNU_IFUNC},
                                                      {"other", kPlt + 20, 4}});
  ByteVector relocations;
  test::append(relocations, Elf64_Rela{kSlot, ELF64_R_INFO(0, R_X86_64_IRELATIVE), kPlt + 16});
  maker.add({".rela.plt", SHT_RELA, 0, 0, relocations, symbols, sizeof(Elf64_Rela), 0});
  const auto found = read_symbols(maker.make());
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].name, "copy@plt");
  EXPECT_EQ(found[0].size, 16u);
}

TEST(ReadSymbols, NamesPltStubsByTheirResolverIn32BitFiles) {
  for (const char* const section : {".plt", ".iplt"}) {
    Elf32Maker maker;
    ByteVector code(32, 0x90);
    std::copy_n(ByteVector{0xFF, 0x25, 0x00, 0x40, 0x00, 0x00}.begin(), 6, code.begin());  // JMP [0x4000]
    maker.add({section, SHT_PROGBITS, kCodeFlags, 0x1000, code, 0, 16, 0});
    maker.segments.push_back({PT_LOAD, 0x1000, maker.sections[0].offset, code.size()});
    maker.add({".got.plt", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x4000, {0x10, 0x10, 0, 0}, 0, 4, 0});
    maker.segments.push_back({PT_LOAD, 0x4000, maker.sections[1].offset, 4, 4, 0x1000, PF_R | PF_W});
    maker.add_symbols(SHT_SYMTAB, {{"copy", 0x1010, 4, STT_GNU_IFUNC}});
    ByteVector relocations;
    test::append(relocations, Elf32_Rel{0x4000, ELF32_R_INFO(0, R_386_IRELATIVE)});
    maker.add({".rel.plt", SHT_REL, 0, 0, relocations, 0, sizeof(Elf32_Rel), 0});  // as in static programs
    const auto found = read_symbols(maker.make());
    ASSERT_EQ(found.size(), 2u);
    EXPECT_EQ(found[0].name, "copy@plt");
  }
}

std::vector<std::string> names_of(const std::vector<trace::SymbolEntry>& symbols) {
  std::vector<std::string> names;
  for (const trace::SymbolEntry& one : symbols) names.push_back(one.name);
  return names;
}

// Code at 0x1000: a resolver of 32 bytes, which takes the functions at 0x1020 and 0x1030, and a third one.
Elf64Maker with_resolver(std::uint16_t type = ET_DYN) {
  Elf64Maker maker;
  maker.type = type;
  ByteVector code(80, 0x90);
  const ByteVector lea = {0x48, 0x8D, 0x05, 0x19, 0, 0, 0, 0x4C, 0x8D, 0x0D, 0x22, 0, 0, 0, 0xC3};
  const ByteVector mov = {0xB8, 0x20, 0x10, 0, 0, 0x48, 0xC7, 0xC2, 0x30, 0x10, 0, 0, 0xC3};
  std::ranges::copy(type == ET_EXEC ? mov : lea, code.begin());
  maker.add({".text", SHT_PROGBITS, kCodeFlags, 0x1000, code, 0, 16, 0});
  maker.segments.push_back({PT_LOAD, 0x1000, maker.sections[0].offset, code.size()});
  return maker;
}

TEST(ReadSymbols, NamesWhatAnIfuncChooses) {
  for (const std::uint16_t type : {std::uint16_t{ET_DYN}, std::uint16_t{ET_EXEC}}) {
    Elf64Maker maker = with_resolver(type);
    maker.add_symbols(SHT_SYMTAB, {{"copy", 0x1000, 32, STT_GNU_IFUNC},
                                   {"__copy_avx_erms", 0x1020, 16, STT_FUNC, STB_LOCAL},
                                   {"__amove_avx_erms", 0x1020, 16, STT_FUNC, STB_LOCAL},
                                   {"plain", 0x1030, 16, STT_FUNC, STB_LOCAL},
                                   {"copy_more", 0x1040, 16}});
    const auto found = read_symbols(maker.make());
    EXPECT_EQ(names_of(found),
              (std::vector<std::string>{"copy [resolver]", "copy (avx_erms)", "__amove_avx_erms",
                                        "__copy_avx_erms", "copy (plain)", "plain", "copy_more"}));
    EXPECT_EQ(found[1].size, 16u);
  }
}

TEST(ReadSymbols, NamesWhatAnIfuncOfAStrippedFileChooses) {
  Elf64Maker maker = with_resolver();
  maker.add_symbols(SHT_DYNSYM, {{"copy", 0x1000, 32, STT_GNU_IFUNC}});
  EXPECT_EQ(names_of(read_symbols(maker.make())),
            (std::vector<std::string>{"copy [resolver]", "copy (0x1020)", "copy (0x1030)"}));
}

// All symbols are there: code that no symbol begins at is no function.
TEST(ReadSymbols, NamesNoCodeInAFunctionThatAResolverTakes) {
  Elf64Maker maker = with_resolver();
  maker.add_symbols(SHT_SYMTAB, {{"copy", 0x1000, 32, STT_GNU_IFUNC}, {"f", 0x1020, 48}});
  EXPECT_EQ(names_of(read_symbols(maker.make())),
            (std::vector<std::string>{"copy [resolver]", "copy (f)", "f"}));
}

TEST(ReadSymbols, BoundsTheWorkOfOverlappingResolvers) {
  Elf64Maker maker = with_resolver();
  std::vector<test::ElfSymbol> symbols;
  for (std::uint64_t i = 0; i < 2000; ++i)
    symbols.push_back({"r" + std::to_string(i), 0x1000, 80, STT_GNU_IFUNC});
  for (std::uint64_t i = 0; i < 64; ++i)
    symbols.push_back({"s" + std::to_string(i), 0x1000 + i, 80 - i, STT_GNU_IFUNC});
  maker.add_symbols(SHT_SYMTAB, symbols);
  EXPECT_EQ(read_symbols(maker.make()).size(), 2064u);
}

// The version that programs are linked to today names a function, not the one that comes first.
TEST(ReadSymbols, PrefersDefaultVersions) {
  Elf64Maker maker = with_resolver();
  const auto table = maker.add_symbols(SHT_DYNSYM, {{"afree", 0x1020, 16}, {"free", 0x1020, 16}});
  ByteVector versions;
  for (const unsigned one : {0U, 0x8002U, 2U}) test::append(versions, static_cast<std::uint16_t>(one));
  maker.add({".gnu.version", SHT_GNU_versym, SHF_ALLOC, 0, versions, table, 2, 0});
  EXPECT_EQ(names_of(read_symbols(maker.make())), (std::vector<std::string>{"free", "afree"}));
  Elf64Maker with_names = with_resolver();
  with_names.add_symbols(SHT_SYMTAB,
                         {{"afree@V_1", 0x1020, 16}, {"free@@V_1", 0x1020, 16}, {"@f@8", 0x1030, 16}});
  EXPECT_EQ(names_of(read_symbols(with_names.make())), (std::vector<std::string>{"free", "afree", "@f@8"}));
}

// A thousand stubs of one slot. The slot's name is a third of the file.
TEST(ReadSymbols, LimitsMemoryOfSharedStubNames) {
  constexpr std::uint64_t kPlt = 0x10000;
  constexpr std::uint64_t kSlot = 0x40000;
  constexpr std::size_t kStubs = 1000;
  Elf64Maker maker;
  ByteVector code(kStubs * 16, 0xCC);
  for (std::size_t i = 0; i < kStubs; ++i) {
    code[i * 16] = 0xFF;
    code[i * 16 + 1] = 0x25;
    const auto displacement = static_cast<std::int32_t>(kSlot - (kPlt + i * 16 + 6));
    std::memcpy(&code[i * 16 + 2], &displacement, 4);
  }
  maker.add({".plt", SHT_PROGBITS, kCodeFlags, kPlt, code, 0, 16, 0});
  maker.segments.push_back({PT_LOAD, kPlt, maker.sections[0].offset, code.size()});
  const auto symbols =
      maker.add_symbols(SHT_DYNSYM, {{std::string(8000, 'n'), 0, 0, STT_FUNC, STB_GLOBAL, 0}});
  ByteVector relocations;
  test::append(relocations, Elf64_Rela{kSlot, ELF64_R_INFO(1, R_X86_64_JUMP_SLOT), 0});
  maker.add({".rela.plt", SHT_RELA, 0, 0, relocations, symbols, sizeof(Elf64_Rela), 0});
  const ByteVector file = maker.make();
  std::size_t bytes = 0;
  for (const trace::SymbolEntry& one : read_symbols(file)) bytes += one.name.size();
  EXPECT_GT(bytes, 8000U);
  EXPECT_LT(bytes, 5 * file.size());
}

TEST(ReadSymbols, NamesPltStubsOf32BitFiles) {
  Elf32Maker maker;
  ByteVector code(32, 0x90);
  std::copy_n(ByteVector{0xFF, 0x25, 0x08, 0x40, 0x00, 0x00}.begin(), 6, code.begin());  // JMP [0x4008]
  std::copy_n(ByteVector{0xFF, 0xA3, 0x0C, 0x00, 0x00, 0x00}.begin(), 6,
              code.begin() + 16);  // JMP [EBX + 12]
  maker.add({".plt", SHT_PROGBITS, kCodeFlags, 0x1000, code, 0, 4, 0});
  maker.segments.push_back({PT_LOAD, 0x1000, maker.sections[0].offset, code.size()});
  maker.add({".got.plt", SHT_PROGBITS, SHF_ALLOC, 0x4000, ByteVector(16), 0, 4, 0});
  const auto symbols = maker.add_symbols(
      SHT_DYNSYM, {{"puts", 0, 0, STT_FUNC, STB_GLOBAL, 0}, {"exit", 0, 0, STT_FUNC, STB_GLOBAL, 0}});
  ByteVector relocations;
  test::append(relocations, Elf32_Rel{0x4008, ELF32_R_INFO(1, R_386_JMP_SLOT)});
  test::append(relocations, Elf32_Rel{0x400C, ELF32_R_INFO(2, R_386_JMP_SLOT)});
  maker.add({".rel.plt", SHT_REL, 0, 0, relocations, symbols, sizeof(Elf32_Rel), 0});
  const auto found = read_symbols(maker.make());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].name, "puts@plt");
  EXPECT_EQ(found[1].name, "exit@plt");
}

// The symbols of this program's file match its addresses.
extern "C" [[gnu::noinline, gnu::used]] int ptkit_test_elf_marker(int value) { return value * 3 + 1; }

TEST(OwnProgram, HasCodeAndSymbols) {
  trace::TraceBundle bundle;
  const auto index = add_elf(bundle, "/proc/self/exe", {});
  ASSERT_TRUE(index.ok()) << index.failure().detail;
  const auto symbols = read_symbols(bundle.files[0].contents.bytes());
  const auto marker = std::find_if(symbols.begin(), symbols.end(),
                                   [](const auto& symbol) { return symbol.name == "ptkit_test_elf_marker"; });
  ASSERT_NE(marker, symbols.end()) << "is the test program stripped?";
  const base::Bytes in_file = bundle.files[0].contents.bytes().subspan(marker->file_offset, marker->size);
  const auto* in_memory = reinterpret_cast<const std::uint8_t*>(&ptkit_test_elf_marker);
  EXPECT_TRUE(std::equal(in_file.begin(), in_file.end(), in_memory));
  EXPECT_TRUE(std::is_sorted(symbols.begin(), symbols.end(),
                             [](const auto& a, const auto& b) { return a.file_offset < b.file_offset; }));
}

}  // namespace
}  // namespace ptkit::code::image
