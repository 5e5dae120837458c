// PTWRITE payloads in words.
#include <gtest/gtest.h>

#include "trace/ptwrite_text.h"

namespace ptkit::trace {
namespace {

TEST(PtwriteText, NamesMarksOfDrakvuf) {
  EXPECT_EQ(ptwrite_text(0x1D000000'00001267), "drakvuf: tid 4711");
  EXPECT_EQ(ptwrite_text(0xC3000000'23456000), "drakvuf: cr3 0x23456000 (low 32 bits)");
  EXPECT_EQ(ptwrite_text(0xCC000000'00000031), "drakvuf: event 0x31");
  EXPECT_EQ(ptwrite_text(0xBAD10000'00000000), "drakvuf: no trace since the event before");
  EXPECT_EQ(ptwrite_text(0x1D000001'00001267), "");
}

}  // namespace
}  // namespace ptkit::trace
