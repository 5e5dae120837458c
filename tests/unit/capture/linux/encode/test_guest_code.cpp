#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "capture/linux/encode/guest_code.h"

namespace ptkit::capture {
namespace {

using code::insn::InsnClass;
using Code = std::vector<std::uint8_t>;

GuestBlock block_of(const Code& bytes, std::uint64_t pc = 0x1000) {
  GuestCode code;
  GuestBlock block = code[code.add(pc, bytes, 7)];
  EXPECT_EQ(code.size(), 1U);
  block.sizes = nullptr;  // gone with the code
  return block;
}

TEST(GuestCode, DecodesTheEndOfABlock) {
  GuestCode code;
  // nop; nopw; jz +0x10
  const std::uint32_t number = code.add(0x1000, Code{0x90, 0x66, 0x90, 0x74, 0x10}, 7);
  const GuestBlock& block = code[number];
  EXPECT_EQ(block.pc, 0x1000U);
  EXPECT_EQ(block.last, 0x1003U);
  EXPECT_EQ(block.next, 0x1005U);
  EXPECT_EQ(block.target, 0x1015U);
  EXPECT_EQ(block.valid_from, 7U);
  EXPECT_EQ(block.insns, 3U);
  EXPECT_EQ(block.end.cls, InsnClass::COND_JUMP);
  EXPECT_FALSE(block.repeats);
  EXPECT_FALSE(block.single);
  const auto sizes = GuestCode::sizes(block);
  EXPECT_EQ(Code(sizes.begin(), sizes.end()), (Code{1, 2, 2}));
}

TEST(GuestCode, MarksBlocksThatNoInstructionEnds) {
  EXPECT_TRUE(block_of({0x90}).single);
  EXPECT_TRUE(block_of({0xf0, 0xff, 0x00}).single);        // lock inc
  EXPECT_FALSE(block_of({0x90, 0x90}).single);             // two
  EXPECT_FALSE(block_of({0xc3}).single);                   // ret
  EXPECT_FALSE(block_of({0xf3, 0xa4}).single);             // rep movsb
  EXPECT_FALSE(block_of({0x90}, 0x1fff).single);           // at the end of a page
  EXPECT_FALSE(block_of({0x66, 0x90}, 0x1fff).single);     // across it
  EXPECT_TRUE(block_of({0xf3, 0x0f, 0x1e, 0xfa}).single);  // endbr64 is no string instruction
  EXPECT_TRUE(block_of({0xf2, 0x0f, 0x10, 0x00}).single);  // nor is movsd
  EXPECT_TRUE(block_of({0x90, 0xf3, 0xab}).repeats);       // nop; rep stosd
  EXPECT_TRUE(block_of({0x90, 0xf2, 0xae}).repeats);       // nop; repne scasb
}

TEST(GuestCode, LeavesOutInvalidBytes) {
  EXPECT_EQ(block_of({0x06}).insns, 0U);  // push es: not in 64-bit mode
  EXPECT_EQ(block_of({}).insns, 0U);
  EXPECT_FALSE(block_of({0x06}).single);
  const GuestBlock half = block_of({0x90, 0x06});
  EXPECT_EQ(half.insns, 1U);
  EXPECT_EQ(half.next, 0x1001U);
  const GuestBlock cut = block_of({0x90, 0xe8, 0x00});  // a truncated CALL
  EXPECT_EQ(cut.insns, 1U);
  EXPECT_EQ(cut.end.cls, InsnClass::OTHER);
  EXPECT_EQ(block_of({0xc3, 0x90}).insns, 1U);  // nothing follows a branch
}

TEST(GuestCode, BlocksDoNotMoveWhileOthersAreAdded) {
  constexpr std::uint32_t kBlocks = 50'000;
  GuestCode code;
  std::atomic<bool> wrong{false};
  std::thread reader([&] {
    for (std::uint32_t seen = 0; seen < kBlocks;) {
      seen = code.size();
      if (seen == 0) continue;
      const GuestBlock& block = code[seen - 1];
      const auto sizes = GuestCode::sizes(block);
      if (block.pc != seen - 1 || block.insns != 2 || sizes[0] != 1 || sizes[1] != 1) wrong = true;
    }
  });
  const Code bytes{0x90, 0xc3};
  for (std::uint32_t i = 0; i < kBlocks; ++i) code.add(i, bytes, 0);
  reader.join();
  EXPECT_FALSE(wrong);
  for (std::uint32_t i = 0; i < kBlocks; ++i) ASSERT_EQ(code[i].pc, i);
}

TEST(GuestCode, ChildCopiesBlocksOfItsParent) {
  GuestCode parent;
  for (std::uint32_t i = 0; i < 5000; ++i) parent.add(i, Code{0x90, 0xc3}, 0);
  GuestCode child(parent, 3000);
  EXPECT_EQ(child.size(), 3000U);
  EXPECT_EQ(child.add(0x77, Code{0x66, 0x90}, 0), 3000U);
  EXPECT_EQ(parent.add(0x88, Code{0xc3}, 0), 5000U);
  EXPECT_EQ(child[3000].pc, 0x77U);
  EXPECT_EQ(GuestCode::sizes(child[3000])[0], 2U);
  EXPECT_EQ(parent[3000].pc, 3000U);
  for (std::uint32_t i = 0; i < 3000; ++i) ASSERT_EQ(child[i].pc, i);
  EXPECT_EQ(GuestCode(parent, 0).size(), 0U);
  EXPECT_EQ(GuestCode(parent, 1U << 30).size(), 5001U);
}

}  // namespace
}  // namespace ptkit::capture
