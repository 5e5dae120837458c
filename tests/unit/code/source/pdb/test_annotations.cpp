// Code and lines of inlined calls in binary annotations.
#include <gtest/gtest.h>

#include <string>

#include "code/source/pdb/annotations.h"

namespace ptkit::code::pdb {
namespace {

using Annotations = std::vector<std::uint8_t>;

std::string listed(const Annotations& annotations, std::uint32_t size = 0x100) {
  std::vector<SiteRow> rows;
  EXPECT_TRUE(read_annotations(annotations, size, rows));
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

// Operations: 3 a step of code, 4 a length, 5 a file, 6 a step of lines, 0xb of lines and code.
TEST(PdbAnnotations, ALineReachesToTheNextOneOrToTheEndOfItsCode) {
  EXPECT_EQ(listed({0x06, 0x08, 0x03, 0x0c, 0x0b, 0x73, 0x04, 0x09, 0x03, 0x08, 0x03, 0x80, 0x60, 0x04, 0x04,
                    0x00, 0x00}),
            "12 line 4\n15 line 1\n24 end\n32 line 1\n128 line 1\n132 end\n");
}

TEST(PdbAnnotations, AStepCountsFromTheEndOfTheLastCode) {
  EXPECT_EQ(listed({0x03, 0x10, 0x04, 0x04, 0x03, 0x08, 0x04, 0x02}),
            "16 line 0\n20 end\n28 line 0\n30 end\n");
  EXPECT_EQ(listed({0x01, 0x10, 0x04, 0x04}), "16 line 0\n20 end\n");
}

TEST(PdbAnnotations, ALengthInOneAnnotationWithItsBeginIsNoStep) {
  EXPECT_EQ(listed({0x0c, 0x04, 0x10, 0x03, 0x08, 0x04, 0x02}), "16 line 0\n20 end\n24 line 0\n26 end\n");
}

TEST(PdbAnnotations, LinesMayBeOfOtherFiles) {
  EXPECT_EQ(listed({0x05, 0x30, 0x06, 0x05, 0x03, 0x04, 0x05, 0x00, 0x03, 0x04, 0x04, 0x04}),
            "4 file 48 line -2\n8 file 0 line -2\n12 end\n");
}

TEST(PdbAnnotations, CodeWithoutAnEndReachesToTheFunctionsEnd) {
  EXPECT_EQ(listed({0x03, 0x04}, 8), "4 line 0\n8 end\n");
}

TEST(PdbAnnotations, CodeBehindTheFunctionIsLeftOut) {
  EXPECT_EQ(listed({0x03, 0x04, 0x04, 0xdf, 0xff, 0xff, 0xff, 0x03, 0xdf, 0xff, 0xff, 0xff, 0x04, 0x04}, 8),
            "4 line 0\n8 end\n");
}

TEST(PdbAnnotations, NumbersHaveOneTwoOrFourBytes) {
  EXPECT_EQ(listed({0x03, 0x7f, 0x03, 0x81, 0x02, 0x03, 0xc0, 0x01, 0x00, 0x00, 0x06, 0xc0, 0x00, 0x40, 0x01,
                    0x03, 0x01},
                   0x100000),
            "127 line 0\n385 line 0\n65921 line 0\n65922 line -8192\n1048576 end\n");
}

TEST(PdbAnnotations, ColumnsAndKindsAreNotUsed) {
  EXPECT_EQ(listed({0x09, 0x05, 0x0d, 0x05, 0x0a, 0x05, 0x08, 0x01, 0x07, 0x02, 0x02, 0x03, 0x03, 0x04, 0x04,
                    0x04}),
            "4 line 0\n8 end\n");
}

TEST(PdbAnnotations, OtherFormsAreNotKnown) {
  std::vector<SiteRow> rows;
  for (const Annotations& one : std::vector<Annotations>{{0x03},
                                                         {0x0e, 0x01},
                                                         {0x80},
                                                         {0xe0, 0x00, 0x00, 0x00},
                                                         {0x03, 0x80},
                                                         {0x03, 0xc0, 0x01, 0x02},
                                                         {0x03, 0xe0, 0x01, 0x02, 0x03},
                                                         {0x03, 0xff},
                                                         {0x0c, 0x01},
                                                         {0x84, 0x03, 0x04}}) {
    EXPECT_FALSE(read_annotations(one, 0x100, rows)) << testing::PrintToString(one);
  }
  EXPECT_TRUE(read_annotations({}, 0x100, rows));
  EXPECT_TRUE(rows.empty());
}

}  // namespace
}  // namespace ptkit::code::pdb
