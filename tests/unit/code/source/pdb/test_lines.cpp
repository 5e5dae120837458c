// Source lines in the text that llvm-pdbutil writes of a PDB.
#include <gtest/gtest.h>

#include <array>

#include "code/source/pdb/dump/line_reader.h"
#include "unit/support/makers/pdb_dump.h"

namespace ptkit::code::pdb::test {
namespace {

constexpr std::uint64_t kMuch = 1 << 20U;

const std::string kFile = "/src/a (b).c (MD5: 1A41863D876792A0133722A6B38963BD)\n";
const std::string kOther = "C:\\src\\h.h (no checksum)\n";

std::string lines(const std::string& text) {
  return part("Lines", "Mod 0000 | `/src/a.o`: \n" + text + "  \nMod 0001 | `* Linker *`: \n") + kSections;
}

std::string head(const std::string& range, int count, const char* kind = "line/addr") {
  return "  0001:" + range + ", " + kind + " entries = " + std::to_string(count) + "\n";
}

std::string listed(const std::string& text) {
  code::source::Strings paths;
  code::source::Budget memory(kMuch);
  LineReader reader(paths, memory);
  read_in_parts(reader, text);
  EXPECT_EQ(reader.problem(), "");
  std::string found;
  for (const Row& row : reader.rows()) {
    std::array<char, 16> address{};
    std::snprintf(address.data(), address.size(), "%x", row.address);
    found += std::string(address.data()) + " " + std::string(paths.text(row.file)) + ":" +
             std::to_string(row.line) + "\n";
  }
  return found;
}

std::string problem_of(const std::string& text, std::uint64_t most = kMuch) {
  code::source::Strings paths;
  code::source::Budget memory(most);
  LineReader reader(paths, memory);
  read_in_parts(reader, text);
  return reader.problem();
}

TEST(PdbLines, ALineReachesToTheNextOneOrToTheEndOfItsFunction) {
  EXPECT_EQ(listed(lines(kFile + head("00000010-00000030", 3) +
                         "    12 00000010 !   13 0000001C     13 00000029 ! \n" + kOther +
                         head("00000040-00000050", 2, "line/column/addr") +
                         "  12345 00000040     7 00000048 ! \n")),
            "1010 /src/a (b).c:12\n101c /src/a (b).c:13\n1030 :0\n"
            "1040 C:\\src\\h.h:12345\n1048 C:\\src\\h.h:7\n1050 :0\n");
}

TEST(PdbLines, AFunctionMayHaveLinesOfSeveralFiles) {
  EXPECT_EQ(listed(lines(kFile + head("00000010-00000030", 2) + "    12 00000010 !   13 00000028 ! \n" +
                         kOther + head("00000010-00000030", 1) + "     3 00000020 ! \n")),
            "1010 /src/a (b).c:12\n1020 C:\\src\\h.h:3\n1028 /src/a (b).c:13\n1030 :0\n");
}

TEST(PdbLines, OfSeveralLinesAtAnAddressTheFirstOneHasTheInstructionThere) {
  EXPECT_EQ(listed(lines(kFile + head("00000000-00000008", 3) +
                         "    12 00000000 !   13 00000000 !   14 00000000 ! \n")),
            "1000 /src/a (b).c:12\n1001 /src/a (b).c:14\n1008 :0\n");
}

TEST(PdbLines, CodeBeforeTheFirstLineOfAFunctionBelongsToIt) {
  EXPECT_EQ(listed(lines(kFile + head("00000000-00000008", 2) + "    12 00000003 !   13 00000005 ! \n")),
            "1000 /src/a (b).c:12\n1005 /src/a (b).c:13\n1008 :0\n");
}

TEST(PdbLines, HiddenCodeBelongsToNoLine) {
  EXPECT_EQ(listed(lines(kFile + head("00000000-00000008", 3) +
                         "    12 00000000 !  NSI 00000002 !  ASI 00000004   \n")),
            "1000 /src/a (b).c:12\n1002 /src/a (b).c:0\n1008 :0\n");
}

TEST(PdbLines, OfFoldedFunctionsTheFirstOneCounts) {
  EXPECT_EQ(listed(lines(kFile + head("00000000-00000008", 1) + "    12 00000000 ! \n" + kOther +
                         head("00000000-00000008", 1) + "     5 00000000 ! \n" +
                         head("00000004-00000010", 2) + "     8 00000004 !    9 0000000C ! \n")),
            "1000 /src/a (b).c:12\n1008 C:\\src\\h.h:8\n100c C:\\src\\h.h:9\n1010 :0\n");
}

TEST(PdbLines, CodeOutsideOfSectionsIsLeftOut) {
  EXPECT_EQ(listed(lines(kFile + "  0002:00000000-00000004, line/addr entries = 1\n    1 00000000 !\n" +
                         "  0007:00000000-00000004, line/addr entries = 1\n    1 00000000 !\n" +
                         head("00000000-FFFFFFFF", 1) + "    1 00000000 !\n")),
            "");
}

TEST(PdbLines, AnUnknownPathIsNone) {
  EXPECT_EQ(
      listed(lines("(unknown file name offset 48)\n" + head("00000000-00000004", 1) + "    1 00000000 !\n")),
      "1000 :1\n1004 :0\n");
}

TEST(PdbLines, OtherFormsAreAProblem) {
  const std::string form = "llvm-pdbutil lists lines in a form that is not known";
  EXPECT_EQ(problem_of(lines("what is this?\n")), form);
  EXPECT_EQ(problem_of(lines(kFile + head("00000000-00000004", 2) + "    1 00000000 !\n")), form);
  EXPECT_EQ(problem_of(lines(kFile + head("00000000-00000004", 1) + "    1 00000000 !  2 00000001 !\n")),
            form);
  EXPECT_EQ(problem_of(lines(kFile + head("00000000-00000004", 1) + "    1:3 00000000 !\n")), form);
  EXPECT_EQ(problem_of(lines(kFile + head("00000000-00000004", 1) + "    1 0000G000 !\n")), form);
  EXPECT_EQ(problem_of(lines(kFile + head("00000004-00000000", 1) + "    1 00000004 !\n")), form);
  EXPECT_EQ(problem_of(lines(kFile + "  0001:00000000-00000004, entries = 1\n    1 00000000 !\n")), form);
  EXPECT_EQ(problem_of(part("Lines", kFile + head("00000000-00000004", 1))), form);
  EXPECT_EQ(problem_of("?"), "llvm-pdbutil lists neither sections nor lines of it");
  EXPECT_EQ(problem_of(kSections), "llvm-pdbutil lists neither sections nor lines of it");
}

TEST(PdbLines, MemoryAndRearrangedCodeAreProblems) {
  std::string many = kFile + head("00000000-00000004", 100);
  for (int i = 0; i < 100; ++i) many += "    1 00000000 !\n";
  EXPECT_EQ(problem_of(lines(many), 900), "it has more lines than a file of its size should");
  EXPECT_EQ(problem_of(lines(many), 9000), "");
  EXPECT_NE(problem_of(part("Original Section Headers", "  SECTION HEADER #1\n") + lines("")).find("OMAP"),
            std::string::npos);
}

}  // namespace
}  // namespace ptkit::code::pdb::test
