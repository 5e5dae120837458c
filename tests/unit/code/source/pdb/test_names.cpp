// Names in the text that llvm-pdbutil writes of a PDB.
#include <gtest/gtest.h>

#include <algorithm>

#include "code/source/pdb/names.h"
#include "code/source/pdb/pdb_file.h"
#include "unit/support/makers/pdb_dump.h"

namespace ptkit::code::pdb::test {
namespace {

std::string procedure(const std::string& name, const std::string& place, int size,
                      const char* kind = "S_GPROC32") {
  return "      72 | " + std::string(kind) + " [size = 48] `" + name +
         "`\n           parent = 0, end = 292, addr = " + place + ", code size = " + std::to_string(size) +
         "\n           type = `0x1003 (int ())`, flags = none\n";
}

std::string open_symbol(const std::string& name, const std::string& place, const char* flags = "function") {
  return "       0 | S_PUB32 [size = 32] `" + name + "`\n           flags = " + flags + ", addr = " + place +
         "\n";
}

DumpReader read(const std::string& text, std::size_t most = 1 << 20U) {
  DumpReader reader(most);
  read_in_parts(reader, text);
  return reader;
}

std::string listed(const std::string& text, bool is_32_bit = false) {
  DumpReader reader = read(text);
  EXPECT_EQ(reader.problem(), "");
  std::string names;
  for (const trace::SymbolEntry& one : names_in(std::move(reader), is_32_bit))
    names += one.name + " " + std::to_string(one.file_offset) + "+" + std::to_string(one.size) + "\n";
  return names;
}

TEST(PdbNames, ProceduresHaveSizesAndPublicsFillIn) {
  EXPECT_EQ(
      listed(part("Public Symbols", open_symbol("start", "0001:0000") + open_symbol("stub", "0001:0064")) +
             part("Symbols",
                  procedure("start", "0001:0000", 43) + procedure("work", "0001:0048", 16, "S_LPROC32_ID")) +
             kSections),
      "start 4096+43\nwork 4144+16\nstub 4160+0\n");
}

TEST(PdbNames, AMangledNameIsShownWithItsProceduresSize) {
  EXPECT_EQ(listed(part("Public Symbols",
                        open_symbol("_ZN2ns1gEi", "0001:0016") + open_symbol("?h@@YAXXZ", "0001:0032")) +
                   part("Symbols", procedure("ns::g", "0001:0016", 8) + procedure("h", "0001:0032", 9)) +
                   kSections),
            "_ZN2ns1gEi 4112+8\nns::g 4112+8\nh 4128+9\n?h@@YAXXZ 4128+9\n");
}

TEST(PdbNames, NamesOf32BitCodeHaveNoDecoration) {
  EXPECT_EQ(listed(part("Public Symbols", open_symbol("_f@8", "0001:0000") + open_symbol("_g", "0001:0008")) +
                       part("Symbols", procedure("g", "0001:0008", 4)) + kSections,
                   true),
            "f 4096+0\ng 4104+4\n");
}

TEST(PdbNames, OnlyCodeHasNames) {
  EXPECT_EQ(
      listed(part("Public Symbols", open_symbol("data", "0001:0000", "none") +
                                        open_symbol("table", "0002:0000") + open_symbol("far", "0009:0000")) +
             part("Symbols", procedure("beyond", "0001:9999", 4) + procedure("none", "0000:0000", 4) +
                                 "      1 | S_LDATA32 [size = 4] `value`\n           addr = 0001:0004\n") +
             kSections),
      "");
}

TEST(PdbNames, ThunksAndNamesWithBackquotes) {
  EXPECT_EQ(
      listed(part("Symbols",
                  procedure("`anonymous namespace'::f", "0001:0000", 4) +
                      "      1 | S_THUNK32 [size = 4] `jump`\n           parent = 0, end = 4, next = 0\n"
                      "           kind = thunk, size = 6, addr = 0001:0016\n") +
             kSections),
      "`anonymous namespace'::f 4096+4\njump 4112+6\n");
}

TEST(PdbNames, OtherTextIsAProblem) {
  const std::string neither = "llvm-pdbutil lists neither sections nor symbols of it";
  EXPECT_EQ(read("").problem(), neither);
  EXPECT_EQ(read("y\ny\ny\n").problem(), neither);
  EXPECT_EQ(read(kSections).problem(), neither);
  EXPECT_EQ(read(part("Symbols", procedure("f", "0001:0000", 4))).problem(), neither);
  EXPECT_EQ(read(std::string(1 << 20U, 'x')).problem(), neither);
}

TEST(PdbNames, RearrangedCodeHasNone) {
  const std::string original =
      part("Original Section Headers", "  SECTION HEADER #1\n       200 virtual size\n");
  EXPECT_EQ(read(part("Symbols", "") + kSections + original).problem(),
            "its addresses are those of code that was rearranged afterwards (OMAP)");
}

TEST(PdbNames, MemoryIsBounded) {
  std::string many;
  for (int i = 0; i < 100; ++i) many += procedure("name", "0001:0000", 4);
  DumpReader reader = read(part("Symbols", many), 5 * sizeof(DumpedSymbol));
  EXPECT_EQ(reader.problem(), "it has more names than a file of its size should");
  EXPECT_LE(reader.procedures.size(), 5U);
}

TEST(PdbNames, ALineWithoutEndTakesNoMemory) {
  OutputLines lines;
  std::size_t given = 0;
  for (int i = 0; i < 1000; ++i) lines.take(std::string(4096, 'x'), [&](std::string_view) { ++given; });
  EXPECT_EQ(given, 0U);
  std::string last;
  lines.take("\nnext\n", [&](std::string_view line) { last = line; });
  EXPECT_EQ(last, "next");
}

TEST(PdbId, GuidAndAge) {
  EXPECT_EQ(pdb_id("3F2504E04F8911D39A0C0305E82C3301", 26), "3f2504e04f8911d39a0c0305e82c3301-1a");
  EXPECT_EQ(pdb_id("3F2504E0", 26), "");
  EXPECT_EQ(pdb_id("3F2504E04F8911D39A0C0305E82C33xx", 1), "");
  EXPECT_TRUE(is_pdb_id("3f2504e04f8911d39a0c0305e82c3301-1a"));
  EXPECT_FALSE(is_pdb_id("3f2504e04f8911d39a0c0305e82c3301"));
  EXPECT_FALSE(is_pdb_id("3f2504e04f8911d39a0c0305e82c3301-"));
}

}  // namespace
}  // namespace ptkit::code::pdb::test
