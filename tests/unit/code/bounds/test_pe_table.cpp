// Bounds of functions in PE files: .pdata.
#include <gtest/gtest.h>

#include <string>

#include "base/hexadecimal.h"
#include "code/bounds/table.h"
#include "code/image/pe/pe_file.h"
#include "unit/support/makers/pe_maker.h"

namespace ptkit::code::bounds {
namespace {

using test::ByteVector;
using test::kDataOffset;
using test::kTextAddress;
using test::put_chained;
using test::put_function;

ByteVector stripped() {
  ByteVector bytes = test::small_pe();
  test::put(bytes, 0x80 + 12, 0, 4);   // no COFF symbols
  test::put(bytes, 0x98 + 112, 0, 8);  // no exports
  return bytes;
}

// "410-430, 440-448 part": file offsets of functions.
std::string text_of(const UnwindTable& table) {
  std::string text;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const FunctionSpan one = table.function(i);
    text += (i == 0 ? "" : ", ") + base::hexadecimal(one.begin).substr(2) + '-' +
            base::hexadecimal(one.end).substr(2);
    if (!table.is_entry(one.begin)) text += " part";
  }
  return text;
}

TEST(PeBounds, AreThoseOfTheExceptionDirectory) {
  const ByteVector bytes = stripped();
  const UnwindTable table(bytes);
  EXPECT_EQ(text_of(table), "410-430, 440-448");
  EXPECT_EQ(table.function_at(0x42f), (FunctionSpan{0x410, 0x430}));
  EXPECT_EQ(table.function_at(0x430), std::nullopt);
  EXPECT_TRUE(table.is_entry(0x440));
  EXPECT_FALSE(table.is_entry(0x441));
  EXPECT_EQ(table.rva_of(0x441), kTextAddress + 0x41);
  EXPECT_EQ(table.rva_of(kDataOffset), std::nullopt);  // no code
  EXPECT_EQ(table.call_sites(), 0U);
  EXPECT_EQ(text_of(UnwindTable(test::small_pe(false))), "");  // 32-bit files have no such table
}

// Compilers move parts of a function away, or describe a later part of it by a second entry.
TEST(PeBounds, ChainedEntriesBelongToTheFunctionThatTheyContinue) {
  ByteVector bytes = stripped();
  const std::uint32_t chained = put_chained(bytes, 0x1c0, kTextAddress + 0x10, 3);
  put_function(bytes, 1, kTextAddress + 0x30, kTextAddress + 0x38, chained);
  EXPECT_EQ(text_of(UnwindTable(bytes)), "410-438");
  put_function(bytes, 1, kTextAddress + 0x34, kTextAddress + 0x38, chained);
  EXPECT_EQ(text_of(UnwindTable(bytes)), "410-430, 434-438 part");
  // Right after a function, but of another one.
  put_chained(bytes, 0x1c0, kTextAddress + 0x50, 3);
  put_function(bytes, 1, kTextAddress + 0x30, kTextAddress + 0x38, chained);
  EXPECT_EQ(text_of(UnwindTable(bytes)), "410-430, 430-438 part");
  // UNWIND_INFO that is an address of an entry: bit 0.
  put_function(bytes, 1, kTextAddress + 0x30, kTextAddress + 0x38, test::kDataAddress + 0x81);
  EXPECT_EQ(text_of(UnwindTable(bytes)), "410-438");
  // UNWIND_INFO outside of the file.
  put_function(bytes, 1, kTextAddress + 0x30, kTextAddress + 0x38, 0xffff'ffff);
  EXPECT_EQ(text_of(UnwindTable(bytes)), "410-430, 430-438 part");
}

TEST(PeBounds, KeepAllInTheirStoredForm) {
  ByteVector bytes = stripped();
  put_function(bytes, 1, kTextAddress + 0x34, kTextAddress + 0x38,
               put_chained(bytes, 0x1c0, kTextAddress + 0x10));
  const UnwindTable table(bytes);
  const auto again = UnwindTable::decode(table.encode(), bytes.size());
  ASSERT_TRUE(again);
  EXPECT_EQ(text_of(*again), "410-430, 434-438 part");
  EXPECT_EQ(again->rva_of(0x435), kTextAddress + 0x35);
}

TEST(PeBounds, LeaveOutWhatTheFileLacks) {
  ByteVector bytes = stripped();
  put_function(bytes, 0, kTextAddress + 0x30, kTextAddress + 0x30);     // empty
  put_function(bytes, 1, kTextAddress + 0x100, kTextAddress + 0x1000);  // longer than its section
  put_function(bytes, 2, 0x4000, 0x4010);                               // in a section without bytes
  put_function(bytes, 3, kTextAddress + 0x60, kTextAddress + 0x58);     // ends before it begins
  EXPECT_EQ(text_of(UnwindTable(bytes)), "");
  put_function(bytes, 3, kTextAddress + 0x60, kTextAddress + 0x80);
  put_function(bytes, 4, kTextAddress + 0x70, kTextAddress + 0x90);  // overlaps it
  EXPECT_EQ(text_of(UnwindTable(bytes)), "460-470, 470-490");
}

TEST(PeBounds, SurviveDamagedFiles) {
  ByteVector bytes = stripped();
  const std::uint32_t chained = put_chained(bytes, 0x1c0, kTextAddress + 0x10, 3);
  put_function(bytes, 1, kTextAddress + 0x30, kTextAddress + 0x38, chained);
  const std::string whole = text_of(UnwindTable(bytes));
  int changed = 0;
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const unsigned value : {0x00U, 0x01U, 0x7fU, 0xffU}) {
      ByteVector damaged = bytes;
      damaged[at] = static_cast<std::uint8_t>(value);
      changed += text_of(UnwindTable(damaged)) != whole ? 1 : 0;
    }
  }
  EXPECT_GT(changed, 20);
}

}  // namespace
}  // namespace ptkit::code::bounds
