// Tables of generated files: bounds, call sites, stubs, the stored form, and damage.
#include <gtest/gtest.h>

#include <random>
#include <string_view>

#include "code/bounds/table.h"
#include "unit/support/makers/elf_maker.h"

namespace ptkit::code::bounds {
namespace {

using test::append;
using test::ByteVector;
using test::Elf32Maker;
using test::Elf64Maker;
using test::ElfSection;

constexpr std::uint64_t kCode = 0x40'1000;    // link address of .text
constexpr std::uint64_t kFrames = 0x40'2000;  // of .eh_frame
constexpr std::uint64_t kSites = 0x40'3000;   // of .gcc_except_table
constexpr std::size_t kCodeBytes = 0x100;

void append_text(ByteVector& bytes, std::string_view text) {
  bytes.insert(bytes.end(), text.begin(), text.end());
}

// Writes .eh_frame as compilers do: addresses relative to their own, in 4 bytes.
class FrameMaker {
 public:
  // Returns the offset of the CIE. `letters` is its augmentation.
  std::size_t add_common(std::string_view letters) {
    ByteVector entry;
    append(entry, std::uint32_t{0});
    entry.push_back(1);
    append_text(entry, letters);
    append_text(entry, std::string_view("\0\1\x78\x10", 4));
    ByteVector data;
    for (const char letter : letters.substr(letters.empty() ? 0 : 1)) {
      if (letter == 'P') append_text(data, std::string_view("\x1b\1\2\3\4", 5));
      if (letter == 'L' || letter == 'R') data.push_back(0x1b);
    }
    has_sites_ = letters.find('L') != std::string_view::npos;
    if (!letters.empty()) entry.push_back(static_cast<std::uint8_t>(data.size()));
    entry.insert(entry.end(), data.begin(), data.end());
    common_ = bytes.size();
    close(entry);
    return common_;
  }

  void add(std::uint64_t begin, std::uint32_t size, std::uint64_t sites = 0, std::string_view program = {}) {
    ByteVector entry;
    append(entry, static_cast<std::uint32_t>(bytes.size() + 4 - common_));
    append(entry, static_cast<std::uint32_t>(begin - (kFrames + bytes.size() + 8)));
    append(entry, size);
    entry.push_back(has_sites_ ? 4 : 0);
    if (has_sites_)
      append(entry, static_cast<std::uint32_t>(sites == 0 ? 0 : sites - (kFrames + bytes.size() + 17)));
    append_text(entry, program);
    close(entry);
  }

  void add_end() { append(bytes, std::uint32_t{0}); }

  ByteVector bytes;

 private:
  void close(ByteVector entry) {
    entry.resize((entry.size() + 3) / 4 * 4);  // DW_CFA_nop
    append(bytes, static_cast<std::uint32_t>(entry.size()));
    bytes.insert(bytes.end(), entry.begin(), entry.end());
  }

  std::size_t common_ = 0;
  bool has_sites_ = false;
};

// A file with code, these frames and these call sites. `code` gets the file offset of its code.
template <typename Maker>
ByteVector file_of(const FrameMaker& frames, std::uint64_t& code, const ByteVector& sites = {},
                   const ElfSection& more = {}) {
  Maker maker;
  maker.add({".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kCode, ByteVector(kCodeBytes, 0x90), 0, 0, 0});
  maker.add({".eh_frame", SHT_PROGBITS, SHF_ALLOC, kFrames, frames.bytes, 0, 0, 0});
  maker.add({".gcc_except_table", SHT_PROGBITS, SHF_ALLOC, kSites, sites, 0, 0, 0});
  if (!more.contents.empty()) maker.add(more);
  for (const ElfSection& section : maker.sections) {
    const std::uint32_t flags = (section.flags & SHF_EXECINSTR) != 0 ? PF_R | PF_X : PF_R;
    const std::uint64_t size = section.contents.size();
    if (size != 0)
      maker.segments.push_back({PT_LOAD, section.address, section.offset, size, size, 0x1000, flags});
  }
  code = maker.sections[0].offset;
  return maker.make();
}

template <typename Maker>
class UnwindTableOf : public testing::Test {};
using Makers = testing::Types<Elf32Maker, Elf64Maker>;
TYPED_TEST_SUITE(UnwindTableOf, Makers);

TYPED_TEST(UnwindTableOf, HasFunctionBounds) {
  FrameMaker frames;
  frames.add_common("zR");
  frames.add(kCode + 0x40, 0x10);
  frames.add(kCode, 0x20);
  frames.add_end();
  frames.add(kCode + 0x60, 0x10);      // of a file linked after crtend.o
  frames.add(kCode + 0x1'0000, 0x10);  // in no segment
  frames.add(kFrames, 0x10);           // no code
  frames.add(kCode + 0x80, 0x1'0000);  // longer than the segment
  std::uint64_t code = 0;
  const UnwindTable table(file_of<TypeParam>(frames, code));
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(table.function(0), (FunctionSpan{code, code + 0x20}));
  EXPECT_EQ(table.function_at(code + 0x1f), (FunctionSpan{code, code + 0x20}));
  EXPECT_EQ(table.function_at(code + 0x20), std::nullopt);
  EXPECT_EQ(table.function_at(code + 0x40), (FunctionSpan{code + 0x40, code + 0x50}));
  EXPECT_EQ(table.function_at(code + 0x60), (FunctionSpan{code + 0x60, code + 0x70}));
  EXPECT_EQ(table.function_at(0), std::nullopt);
  EXPECT_TRUE(table.is_entry(code));
  EXPECT_FALSE(table.is_entry(code + 1));
  EXPECT_FALSE(table.is_entry(code + 0x80));
  EXPECT_EQ(table.rva_of(code + 0x41), 0x41u);
  EXPECT_EQ(table.rva_of(code + kCodeBytes), std::nullopt);
}

TYPED_TEST(UnwindTableOf, EndsAFunctionWhereTheNextBegins) {
  FrameMaker frames;
  frames.add_common("zR");
  frames.add(kCode, 0x40);
  frames.add(kCode + 0x20, 0x40);
  frames.add(kCode + 0x20, 0x10);
  std::uint64_t code = 0;
  const UnwindTable table(file_of<TypeParam>(frames, code));
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table.function(0), (FunctionSpan{code, code + 0x20}));
  EXPECT_EQ(table.function(1), (FunctionSpan{code + 0x20, code + 0x60}));
}

TYPED_TEST(UnwindTableOf, KnowsPartsByTheirStack) {
  FrameMaker frames;
  frames.add_common("zR");
  frames.add(kCode, 0x10, 0, "\x41\x0e\x10\x86\x02");     // DW_CFA_advance_loc, DW_CFA_def_cfa_offset
  frames.add(kCode + 0x10, 0x10, 0, "\x0e\x20\x86\x02");  // DW_CFA_def_cfa_offset
  frames.add(kCode + 0x20, 0x10, 0, std::string_view("\0\x83\x02", 3));  // DW_CFA_nop, DW_CFA_offset
  std::uint64_t code = 0;
  const UnwindTable table(file_of<TypeParam>(frames, code));
  ASSERT_EQ(table.size(), 3u);
  EXPECT_TRUE(table.is_entry(code));
  EXPECT_FALSE(table.is_entry(code + 0x10));
  EXPECT_FALSE(table.is_entry(code + 0x20));
  EXPECT_EQ(table.function_at(code + 0x18), (FunctionSpan{code + 0x10, code + 0x20}));
}

// The table of one function: begin, length, landing pad and action of each call site.
ByteVector table_of_sites(const std::vector<std::array<std::uint8_t, 4>>& sites) {
  ByteVector bytes{0xff, 0x9b, 0x20, 0x01, static_cast<std::uint8_t>(sites.size() * 4)};
  for (const auto& site : sites) bytes.insert(bytes.end(), site.begin(), site.end());
  return bytes;
}

TYPED_TEST(UnwindTableOf, HasLandingPadsOfCallSites) {
  FrameMaker frames;
  frames.add_common("zPLR");
  frames.add(kCode, 0x40, kSites);
  frames.add(kCode + 0x40, 0x10);  // no table
  std::uint64_t code = 0;
  const ByteVector sites =
      table_of_sites({{0x08, 5, 0x30, 1}, {0x0d, 5, 0x30, 1}, {0x18, 8, 0, 0}, {0x20, 4, 0x38, 0}});
  const UnwindTable table(file_of<TypeParam>(frames, code, sites));
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.call_sites(), 2u);  // neighbours with one landing pad are one
  EXPECT_EQ(table.landing_pad_of(code + 0x07), std::nullopt);
  EXPECT_EQ(table.landing_pad_of(code + 0x08), code + 0x30);
  EXPECT_EQ(table.landing_pad_of(code + 0x11), code + 0x30);
  EXPECT_EQ(table.landing_pad_of(code + 0x12), std::nullopt);
  EXPECT_EQ(table.landing_pad_of(code + 0x18), std::nullopt);
  EXPECT_EQ(table.landing_pad_of(code + 0x23), code + 0x38);
  EXPECT_TRUE(table.is_landing_pad(code + 0x30));
  EXPECT_TRUE(table.is_landing_pad(code + 0x38));
  EXPECT_FALSE(table.is_landing_pad(code));
}

TYPED_TEST(UnwindTableOf, ReadsFixedNumbersAndABaseOfLandingPads) {
  FrameMaker frames;
  frames.add_common("zPLR");
  frames.add(kCode + 0x80, 0x40, kSites);
  ByteVector sites{0x1b};
  append(sites, static_cast<std::uint32_t>(kCode - (kSites + 1)));
  sites.insert(sites.end(), {0xff, 0x03, 13});
  for (const std::uint32_t number : {0x10U, 4U, 0x20U}) append(sites, number);
  sites.push_back(0);
  std::uint64_t code = 0;
  const UnwindTable table(file_of<TypeParam>(frames, code, sites));
  EXPECT_EQ(table.landing_pad_of(code + 0x93), code + 0x20);
}

TYPED_TEST(UnwindTableOf, LeavesOutCallSitesOutsideOfTheirFunction) {
  FrameMaker frames;
  frames.add_common("zPLR");
  frames.add(kCode, 0x20, kSites);
  std::uint64_t code = 0;
  const ByteVector sites = table_of_sites({{0x08, 5, 0x10, 1}, {0x1e, 5, 0x10, 1}, {0x10, 2, 0x10, 1}});
  const UnwindTable table(file_of<TypeParam>(frames, code, sites));
  EXPECT_EQ(table.call_sites(), 1u);
  EXPECT_EQ(table.landing_pad_of(code + 0x08), code + 0x10);
}

TYPED_TEST(UnwindTableOf, SplitsPltsIntoStubs) {
  constexpr std::uint64_t kStubs = 0x40'4000;
  FrameMaker frames;
  frames.add_common("zR");
  frames.add(kCode, 0x10);
  frames.add(kStubs, 0x30, 0, "\x0e\x10\x46\x0e\x18");  // one entry for the whole PLT
  const ElfSection plt{".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kStubs, ByteVector(0x30, 0xcc), 0, 16,
                       0};
  std::uint64_t code = 0;
  const UnwindTable table(file_of<TypeParam>(frames, code, ByteVector(16), plt));
  ASSERT_EQ(table.size(), 4u);
  const FunctionSpan second = table.function(2);
  EXPECT_EQ(second.end - second.begin, 16u);
  EXPECT_EQ(table.rva_of(second.begin), kStubs + 16 - kCode);
  EXPECT_TRUE(table.is_entry(second.begin));
  EXPECT_TRUE(table.is_stub(second.begin + 15));
  EXPECT_TRUE(table.is_stub(table.function(3).end - 1));
  EXPECT_FALSE(table.is_stub(table.function(3).end));
  EXPECT_FALSE(table.is_stub(code));
}

TEST(UnwindTable, ReadsFilesWithoutSectionHeaders) {
  FrameMaker frames;
  frames.add_common("zR");
  frames.add(kCode, 0x20);
  frames.add_end();
  frames.add(kCode + 0x40, 0x20);  // what follows the end mark may be anything
  Elf64Maker maker;
  maker.add({".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, kCode, ByteVector(kCodeBytes, 0x90), 0, 0, 0});
  ByteVector header{1, 0x1b, 0x03, 0x3b};
  append(header, static_cast<std::uint32_t>(kFrames - (kSites + 4)));
  maker.add({"no", SHT_PROGBITS, SHF_ALLOC, kSites, header, 0, 0, 0});
  maker.add({"names", SHT_PROGBITS, SHF_ALLOC, kFrames, frames.bytes, 0, 0, 0});
  for (const ElfSection& section : maker.sections) {
    const std::uint64_t size = section.contents.size();
    const std::uint32_t type = section.address == kSites ? PT_GNU_EH_FRAME : PT_LOAD;
    maker.segments.push_back({type, section.address, section.offset, size, size, 0x1000, PF_R | PF_X});
  }
  const std::uint64_t code = maker.sections[0].offset;
  const UnwindTable table(maker.make());
  ASSERT_EQ(table.size(), 1u);
  EXPECT_EQ(table.function(0), (FunctionSpan{code, code + 0x20}));
}

TEST(UnwindTable, IsEmptyForOtherFiles) {
  EXPECT_EQ(UnwindTable(base::Bytes()).size(), 0u);
  EXPECT_EQ(UnwindTable(ByteVector(100, 0x4d)).size(), 0u);
  FrameMaker frames;
  frames.add_common("zR");
  frames.add(kCode, 0x20);
  std::uint64_t code = 0;
  ByteVector file = file_of<Elf64Maker>(frames, code);
  EXPECT_EQ(UnwindTable(file).size(), 1u);
  file[offsetof(Elf64_Ehdr, e_type)] = ET_REL;  // its addresses are not final
  EXPECT_EQ(UnwindTable(file).size(), 0u);
}

TEST(UnwindTable, StopsAtUnknownAugmentations) {
  for (const char* letters : {"zRx", "R", "zRRRRRRRRR"}) {
    FrameMaker frames;
    frames.add_common(letters);
    frames.add(kCode, 0x20);
    frames.add_common("zR");
    frames.add(kCode + 0x40, 0x20);
    std::uint64_t code = 0;
    const UnwindTable table(file_of<Elf64Maker>(frames, code));
    ASSERT_EQ(table.size(), 1u) << letters;
    EXPECT_EQ(table.function(0).begin, code + 0x40) << letters;
  }
}

// A hostile file in which all functions have one large table of call sites.
TEST(UnwindTable, ReadsNoMoreCallSitesThanTheFileHasBytes) {
  constexpr int kFunctions = 20'000;
  FrameMaker frames;
  frames.add_common("zPLR");
  for (int i = 0; i < kFunctions; ++i) frames.add(kCode, kCodeBytes, kSites);
  ByteVector sites{0xff, 0xff, 0x01, 0x80, 0x80, 0x10};  // 256 KiB
  for (int i = 0; i < 0x10000; ++i)
    sites.insert(sites.end(), {static_cast<std::uint8_t>(i % 0x80), 1, 0x20, 0});
  std::uint64_t code = 0;
  const ByteVector file = file_of<Elf64Maker>(frames, code, sites);
  const UnwindTable table(file);
  EXPECT_EQ(table.size(), 1u);
  EXPECT_EQ(table.call_sites(), 1u);  // bytes 0 to 0x7f
  EXPECT_LE(table.memory_bytes(), file.size());
}

UnwindTable sample_table(ByteVector& file) {
  FrameMaker frames;
  frames.add_common("zPLR");
  frames.add(kCode, 0x40, kSites);
  frames.add(kCode + 0x40, 0x10);
  frames.add(kCode + 0x60, 0x10, 0, "\x0e\x20");
  std::uint64_t code = 0;
  file = file_of<Elf64Maker>(frames, code, table_of_sites({{0x08, 5, 0x30, 1}, {0x38, 4, 0x20, 0}}));
  return UnwindTable(file);
}

TEST(UnwindTable, KeepsAllInItsStoredForm) {
  ByteVector file;
  const UnwindTable table = sample_table(file);
  const auto stored = table.encode();
  const auto read = UnwindTable::decode(stored, file.size());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->encode(), stored);
  EXPECT_EQ(read->size(), 3u);
  EXPECT_EQ(read->call_sites(), 2u);
  for (std::uint64_t at = 0; at < file.size(); ++at) {
    EXPECT_EQ(read->function_at(at), table.function_at(at)) << at;
    EXPECT_EQ(read->is_entry(at), table.is_entry(at)) << at;
    EXPECT_EQ(read->landing_pad_of(at), table.landing_pad_of(at)) << at;
    EXPECT_EQ(read->is_landing_pad(at), table.is_landing_pad(at)) << at;
    EXPECT_EQ(read->is_stub(at), table.is_stub(at)) << at;
    EXPECT_EQ(read->rva_of(at), table.rva_of(at)) << at;
  }
  EXPECT_TRUE(UnwindTable().encode().empty());
}

TEST(UnwindTable, RefusesDamagedStoredForms) {
  ByteVector file;
  const auto stored = sample_table(file).encode();
  EXPECT_FALSE(UnwindTable::decode(stored, 0x10).has_value());  // outside of the file
  for (std::size_t size = 0; size < stored.size(); ++size)
    EXPECT_FALSE(UnwindTable::decode(base::Bytes(stored).first(size), file.size()).has_value()) << size;
  ByteVector longer = stored;
  longer.push_back(0);
  EXPECT_FALSE(UnwindTable::decode(longer, file.size()).has_value());
  ByteVector newer = stored;
  newer[0] = 2;
  EXPECT_FALSE(UnwindTable::decode(newer, file.size()).has_value());
}

TEST(UnwindTable, SurvivesDamagedFiles) {
  ByteVector file;
  sample_table(file);
  std::mt19937 random(7);
  std::size_t functions = 0;
  for (int round = 0; round < 3000; ++round) {
    ByteVector damaged = file;
    for (int i = 0; i < 4; ++i) damaged[random() % damaged.size()] = static_cast<std::uint8_t>(random());
    const UnwindTable table(damaged);
    for (std::size_t i = 1; i < table.size(); ++i)
      ASSERT_LE(table.function(i - 1).end, table.function(i).begin);
    const auto stored = table.encode();
    ASSERT_EQ(UnwindTable::decode(stored, damaged.size()).has_value(), table.size() != 0);
    functions += table.size();
  }
  EXPECT_GT(functions, 1000u);
}

}  // namespace
}  // namespace ptkit::code::bounds
