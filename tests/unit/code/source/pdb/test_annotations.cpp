// Code and lines of inlined calls in the text that llvm-pdbutil writes of a PDB.
#include <gtest/gtest.h>

#include <string>

#include "code/source/pdb/dump/annotations.h"

namespace ptkit::code::pdb {
namespace {

std::string listed(const std::vector<std::string>& lines, std::uint32_t size = 0x100) {
  std::vector<SiteRow> rows;
  SiteRows reader(size, rows);
  for (const std::string& line : lines) {
    const auto annotation = annotation_in(line);
    EXPECT_TRUE(annotation) << line;
    if (annotation) reader.add(*annotation);
  }
  reader.finish();
  std::string text;
  for (const SiteRow& row : rows) {
    text += std::to_string(row.offset) + " ";
    if (row.file == SiteRow::kOutside) {
      text += "end\n";
      continue;
    }
    if (row.file != SiteRow::kOwnFile) text += "file " + std::to_string(row.file) + " ";
    text += "line " + std::to_string(row.line) + "\n";
  }
  return text;
}

TEST(PdbAnnotations, ALineReachesToTheNextOneOrToTheEndOfItsCode) {
  EXPECT_EQ(
      listed({"0608      line 4 (+4)", "030C      code 0xC (+0xC)", "0B73      code 0xF (+0x3) line 1 (-3)",
              "0409      code end 0x18 (+0x9)", "0308      code 0x20 (+0x8)", "038160    code 0x80 (+0x60)",
              "0404      code end 0x84 (+0x4)", "0000     "}),
      "12 line 4\n15 line 1\n24 end\n32 line 1\n128 line 1\n132 end\n");
}

// Before LLVM 13, the places that are written do not count the lengths.
TEST(PdbAnnotations, PlacesAreThoseOfTheSteps) {
  EXPECT_EQ(listed({"0310  code 0x10 (+0x10)", "0404  code end 0x14 (+0x4)", "0308  code 0x18 (+0x8)",
                    "0402  code end 0x1A (+0x2)"}),
            "16 line 0\n20 end\n28 line 0\n30 end\n");
}

TEST(PdbAnnotations, ALengthInOneAnnotationWithItsBeginIsNoStep) {
  EXPECT_EQ(listed({"0C0410    code 0x10 (+0x10) code end 0x14 (+0x4)", "0308      code 0x18 (+0x8)",
                    "0402      code end 0x1A (+0x2)"}),
            "16 line 0\n20 end\n24 line 0\n26 end\n");
}

TEST(PdbAnnotations, LinesMayBeOfOtherFiles) {
  EXPECT_EQ(listed({"0530      setfile 30 0x1", "0605      line -2 (-2)", "0304      code 0x4 (+0x4)",
                    "0500      setfile 0", "0304      code 0x8 (+0x4)", "0404      code end 0xC (+0x4)"}),
            "4 file 48 line -2\n8 file 0 line -2\n12 end\n");
}

TEST(PdbAnnotations, CodeWithoutAnEndReachesToTheFunctionsEnd) {
  EXPECT_EQ(listed({"0304      code 0x4 (+0x4)"}, 8), "4 line 0\n8 end\n");
}

TEST(PdbAnnotations, CodeBehindTheFunctionIsLeftOut) {
  EXPECT_EQ(listed({"0304      code 0x4 (+0x4)", "04FF      code end 0xFF (+0xFFFFFFFF)",
                    "0304      code 0x4 (+0xFFFFFFFF)", "0404      code end 0xC (+0x4)"},
                   8),
            "4 line 0\n8 end\n");
}

TEST(PdbAnnotations, ColumnsAndKindsAreNotUsed) {
  EXPECT_EQ(
      listed({"0905      ChangeColumnStart 5", "0D05      ChangeColumnEndDelta -5",
              "0801      ChangeRangeKind 1", "0304      code 0x4 (+0x4)", "0404      code end 0x8 (+0x4)"}),
      "4 line 0\n8 end\n");
}

TEST(PdbAnnotations, OtherFormsAreNotKnown) {
  for (const char* const text :
       {"", "code 0x4 (+0x4)", "030 code 0x4 (+0x4)", "0304 code 0x4", "0304 code 4 4", "0304 code 0x4 (+4)",
        "0304 code 0x4 (+0x4", "0304 code 0xG (+0x4)", "0304 line (+4)", "0304 line 4", "0304 setfile",
        "0304 setfile FFFFFFFF 0x1", "0304 something 4", "0304 Change", "0304 code end (+0x4)",
        "0304 code 0x100000000 (+0x100000000)", "0304 line 99999999999 (+1)"}) {
    EXPECT_FALSE(annotation_in(text)) << text;
  }
  EXPECT_TRUE(annotation_in("00"));
}

}  // namespace
}  // namespace ptkit::code::pdb
