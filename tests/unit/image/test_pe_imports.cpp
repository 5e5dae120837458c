// Functions behind the slots that branches of PE files read.
#include <gtest/gtest.h>

#include <random>

#include "image/pe_imports.h"
#include "unit/support/pe_maker.h"

namespace ptkit::image {
namespace {

using test::ByteVector;
using test::kTextAddress;
using test::put;
using test::put_imports;
using test::small_pe;

constexpr std::uint32_t kSlot = 0x2150;  // the first one
constexpr std::uint32_t kRva = kTextAddress + 0x10;
constexpr std::uint64_t kLoad = 0x7ff6'0000'0000;

// CALL or JMP through the memory at `displacement`, relative to the next instruction or absolute.
ByteVector branch(std::uint8_t second, std::uint32_t displacement, ByteVector prefix = {}) {
  ByteVector code = std::move(prefix);
  const std::size_t at = code.size();
  code.resize(at + 6);
  code[at] = 0xff;
  code[at + 1] = second;
  put(code, at + 2, displacement, 4);
  return code;
}

ByteVector file_with_imports(bool wide, unsigned number = 1) {
  ByteVector bytes = small_pe(wide);
  put_imports(bytes, wide, number);
  return bytes;
}

TEST(PeImports, NamesCallsAndJumpsThroughSlots) {
  for (const unsigned number : {1U, 13U}) {
    const ByteVector bytes = file_with_imports(true, number);
    const PeImports imports(bytes);
    const auto called = [&](const ByteVector& code) { return imports.called(code, kRva, kLoad + kRva); };
    EXPECT_EQ(called(branch(0x15, kSlot - kRva - 6)), "ExpInterlockedPopEntrySList");
    EXPECT_EQ(called(branch(0x25, kSlot + 8 - kRva - 6)), "WS2_32!Ordinal23");
    EXPECT_EQ(called(branch(0x25, kSlot - kRva - 7, {0x48})), "ExpInterlockedPopEntrySList");
    EXPECT_EQ(called(branch(0x15, kSlot - kRva - 8, {0xf2, 0x48})), "ExpInterlockedPopEntrySList");
    EXPECT_EQ(called(branch(0x15, kSlot + 16 - kRva - 6)), "");  // behind the slots
    EXPECT_EQ(called(branch(0x35, kSlot - kRva - 6)), "");       // PUSH
    EXPECT_EQ(called({0xff, 0x15, 0x00}), "");
    EXPECT_EQ(called({}), "");
  }
}

TEST(PeImports, Knows32BitCodeBeforeAndAfterRelocation) {
  const ByteVector bytes = file_with_imports(false);
  const PeImports imports(bytes);
  EXPECT_EQ(imports.called(branch(0x15, 0x400000 + kSlot), kRva, 0x10000000 + kRva),
            "ExpInterlockedPopEntrySList");
  EXPECT_EQ(imports.called(branch(0x15, 0x10000000 + kSlot + 4), kRva, 0x10000000 + kRva),
            "WS2_32!Ordinal23");
  EXPECT_EQ(imports.called(branch(0x15, 0x20000000 + kSlot), kRva, 0x10000000 + kRva), "");
}

TEST(PeImports, OtherFilesHaveNone) {
  EXPECT_TRUE(PeImports(base::Bytes{}).empty());
  EXPECT_TRUE(PeImports(small_pe()).empty());
  EXPECT_FALSE(PeImports(file_with_imports(true)).empty());
}

TEST(PeImports, SurvivesRandomBytesAndEndlessTables) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    ByteVector bytes = file_with_imports(round % 2 == 0);
    for (int i = 0; i < 4; ++i) bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
    for (int i = 0; i < 4; ++i) bytes[0x700 + random() % 0x80] = static_cast<std::uint8_t>(random());
    const PeImports imports(bytes);
    EXPECT_LE(imports.called(branch(0x15, kSlot - kRva - 6), kRva, kLoad + kRva).size(), 4096u);
  }
}

}  // namespace
}  // namespace ptkit::image
