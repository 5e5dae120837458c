// Source lines in PDBs.
#include <gtest/gtest.h>

#include <array>

#include "code/source/pdb/tables.h"
#include "trace/warning_codes.h"
#include "unit/support/makers/pdb_maker.h"

namespace ptkit::code::pdb::test {
namespace {

constexpr std::uint64_t kMuch = 1 << 20U;

// A PDB with one module, of two source files.
class LinesMaker {
 public:
  PdbMaker pdb;
  Fields checksums;
  std::uint32_t file = pdb.file(checksums, "/src/a (b).c", 16);
  std::uint32_t other = pdb.file(checksums, "C:\\src\\h.h");

  // The checksums may stand behind the lines.
  [[nodiscard]] std::vector<std::uint8_t> with(std::vector<std::vector<std::uint8_t>> parts) const {
    PdbMaker maker = pdb;
    parts.push_back(subsection(0xf4, checksums));
    MadeModule module{Symbols().bytes(), {}};
    for (const auto& one : parts) module.parts.insert(module.parts.end(), one.begin(), one.end());
    maker.modules.push_back(std::move(module));
    return maker.file();
  }
};

Tables read(const std::vector<std::uint8_t>& bytes, std::uint64_t most = kMuch) {
  const MsfFile file(bytes);
  return read_tables(file, read_debug_streams(file), "a.pdb", most);
}

std::string listed(const std::vector<std::uint8_t>& bytes) {
  const Tables tables = read(bytes);
  EXPECT_TRUE(tables.problems.empty());
  std::string found;
  for (const Row& row : tables.lines) {
    std::array<char, 16> address{};
    std::snprintf(address.data(), address.size(), "%x", row.address);
    found += std::string(address.data()) + " " + std::string(tables.texts.text(row.file)) + ":" +
             std::to_string(row.line) + "\n";
  }
  return found;
}

std::string problem_of(const std::vector<std::uint8_t>& bytes, std::uint64_t most = kMuch) {
  const Tables tables = read(bytes, most);
  if (tables.problems.empty()) return {};
  EXPECT_TRUE(tables.lines.empty());
  EXPECT_EQ(tables.problems.at(0).code, trace::WarningCode::PDB_PART_UNREADABLE);
  EXPECT_EQ(tables.problems.at(0).arguments.at(1), "source lines");
  return tables.problems.at(0).arguments.at(2);
}

TEST(PdbLines, ALineReachesToTheNextOneOrToTheEndOfItsFunction) {
  const LinesMaker maker;
  EXPECT_EQ(
      listed(maker.with({lines_part(1, 0x10, 0x20, {{maker.file, {{0x10, 12}, {0x1c, 13}, {0x29, 13}}}}),
                         lines_part(1, 0x40, 0x10, {{maker.other, {{0x40, 12345}, {0x48, 7}}}}, true)})),
      "1010 /src/a (b).c:12\n101c /src/a (b).c:13\n1030 :0\n"
      "1040 C:\\src\\h.h:12345\n1048 C:\\src\\h.h:7\n1050 :0\n");
}

TEST(PdbLines, AFunctionMayHaveLinesOfSeveralFiles) {
  const LinesMaker maker;
  EXPECT_EQ(listed(maker.with({lines_part(
                1, 0x10, 0x20, {{maker.file, {{0x10, 12}, {0x28, 13}}}, {maker.other, {{0x20, 3}}}})})),
            "1010 /src/a (b).c:12\n1020 C:\\src\\h.h:3\n1028 /src/a (b).c:13\n1030 :0\n");
}

TEST(PdbLines, OfSeveralLinesAtAnAddressTheFirstOneHasTheInstructionThere) {
  const LinesMaker maker;
  EXPECT_EQ(listed(maker.with({lines_part(1, 0, 8, {{maker.file, {{0, 12}, {0, 13}, {0, 14}}}})})),
            "1000 /src/a (b).c:12\n1001 /src/a (b).c:14\n1008 :0\n");
}

TEST(PdbLines, CodeBeforeTheFirstLineOfAFunctionBelongsToIt) {
  const LinesMaker maker;
  EXPECT_EQ(listed(maker.with({lines_part(1, 0, 8, {{maker.file, {{3, 12}, {5, 13}}}})})),
            "1000 /src/a (b).c:12\n1005 /src/a (b).c:13\n1008 :0\n");
}

TEST(PdbLines, HiddenCodeBelongsToNoLine) {
  const LinesMaker maker;
  EXPECT_EQ(
      listed(maker.with({lines_part(1, 0, 8, {{maker.file, {{0, 12}, {2, 0xf00f00}, {4, 0xfeefee}}}})})),
      "1000 /src/a (b).c:12\n1002 /src/a (b).c:0\n1008 :0\n");
}

TEST(PdbLines, OfFoldedFunctionsTheFirstOneCounts) {
  const LinesMaker maker;
  EXPECT_EQ(listed(maker.with({lines_part(1, 0, 8, {{maker.file, {{0, 12}}}}),
                               lines_part(1, 0, 8, {{maker.other, {{0, 5}}}}),
                               lines_part(1, 4, 12, {{maker.other, {{4, 8}, {12, 9}}}})})),
            "1000 /src/a (b).c:12\n1008 C:\\src\\h.h:8\n100c C:\\src\\h.h:9\n1010 :0\n");
}

TEST(PdbLines, CodeOutsideOfSectionsIsLeftOut) {
  const LinesMaker maker;
  EXPECT_EQ(listed(maker.with({lines_part(2, 0, 4, {{maker.file, {{0, 1}}}}),
                               lines_part(7, 0, 4, {{maker.file, {{0, 1}}}}),
                               lines_part(1, 0, UINT32_MAX, {{maker.file, {{0, 1}}}})})),
            "");
}

TEST(PdbLines, LinesOutsideOfTheirFunctionAreLeftOut) {
  const LinesMaker maker;
  EXPECT_EQ(listed(maker.with({lines_part(1, 0, 4, {{maker.file, {{0, 1}, {4, 2}, {UINT32_MAX, 3}}}})})),
            "1000 /src/a (b).c:1\n1004 :0\n");
}

TEST(PdbLines, AnUnknownPathIsNone) {
  LinesMaker maker;
  const auto part = [](std::uint32_t file) { return lines_part(1, 0, 4, {{file, {{0, 1}}}}); };
  EXPECT_EQ(listed(maker.with({part(8)})), "1000 :1\n1004 :0\n") << "within an entry";
  EXPECT_EQ(listed(maker.with({part(4096)})), "1000 :1\n1004 :0\n");
  const auto beyond = static_cast<std::uint32_t>(maker.checksums.bytes.size());
  maker.checksums.u32(4096).u16(0).align();
  EXPECT_EQ(listed(maker.with({part(beyond)})), "1000 :1\n1004 :0\n");
  maker.checksums.u32(0).u8(200);
  EXPECT_EQ(listed(maker.with({part(maker.other)})), "1000 C:\\src\\h.h:1\n1004 :0\n")
      << "files before a cut one";
}

TEST(PdbLines, PathsAfterOneWithoutAnEndAreNotSought) {
  LinesMaker maker;
  const std::uint32_t endless = maker.pdb.file(maker.checksums, std::string(70000, 'p'));
  const std::uint32_t later = maker.pdb.file(maker.checksums, "/src/later.c");
  const auto bytes = maker.with({lines_part(
      1, 0, 8, {{maker.file, {{0, 1}}}, {endless, {{2, 2}}}, {later, {{4, 3}}}, {maker.file, {{6, 4}}}})});
  EXPECT_EQ(listed(bytes), "1000 /src/a (b).c:1\n1002 :2\n1004 :3\n1006 /src/a (b).c:4\n1008 :0\n");
}

TEST(PdbLines, PartsThatAreNotToBeReadAreSkipped) {
  const LinesMaker maker;
  EXPECT_EQ(listed(maker.with({subsection(0x800000f2, Fields().u32(1)), subsection(0xf5, Fields().u8(1))})),
            "");
}

TEST(PdbLines, DamageIsAProblemWithItsOffset) {
  const LinesMaker maker;
  const std::string cut = "stream 10 is damaged at offset 12: lines of a function are cut";
  const auto changed = [&](std::size_t at, std::uint32_t value) {
    Fields part{lines_part(1, 4, 4, {{maker.file, {{4, 1}, {6, 2}}}})};
    part.set(at, value);
    return maker.with({part.bytes});
  };
  EXPECT_EQ(problem_of(changed(8, 4)), "");
  EXPECT_EQ(problem_of(changed(4, 1 << 20U)), "stream 10 is damaged at offset 4: a part of its lines is cut");
  EXPECT_EQ(problem_of(maker.with({subsection(0xf2, Fields().put(0, 11))})), cut) << "no header";
  EXPECT_EQ(problem_of(changed(16, UINT32_MAX - 3)), cut) << "code beyond 4 GiB";
  EXPECT_EQ(problem_of(changed(24, 3)), cut) << "lines beyond the part";
  EXPECT_EQ(problem_of(changed(24, UINT32_MAX)), cut);
  EXPECT_EQ(problem_of(changed(28, 27)), cut) << "a file beyond its lines";
  EXPECT_EQ(problem_of(changed(28, 29)), cut) << "a file beyond the part";
}

TEST(PdbLines, MemoryAndRearrangedCodeAreProblems) {
  LinesMaker maker;
  std::vector<Line> many(100, Line{0, 1});
  const auto part = lines_part(1, 0, 4, {{maker.file, many}});
  EXPECT_EQ(problem_of(maker.with({part}), 900), "it has more lines than a file of its size should");
  EXPECT_EQ(problem_of(maker.with({part}), 9000), "");
  maker.pdb.is_rearranged = true;
  EXPECT_NE(problem_of(maker.with({part})).find("OMAP"), std::string::npos);
}

}  // namespace
}  // namespace ptkit::code::pdb::test
