// Counts of blocks and of their instructions, of which several blocks may have the same ones.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tables/coverage/block_counts.h"

namespace ptkit::tables::coverage {
namespace {

constexpr std::uint64_t kCode = 0x401000;

code::image::Image image_with(std::vector<std::uint8_t> bytes) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  bundle->spaces.resize(2);
  trace::CodeRegion region;
  region.address = kCode;
  region.bytes = trace::TraceBuffer::from_vector(std::move(bytes));
  region.size = region.bytes.size();
  region.space = trace::kAnySpace;
  bundle->code.push_back(region);
  return code::image::Image(bundle);
}

// A NOP (1 byte), XOR EAX, EAX (2 bytes), NOP.
code::image::Image image_with_code() { return image_with({0x90, 0x31, 0xc0, 0x90}); }

TEST(BlockCounts, CountsEachBlockOnce) {
  BlockCounts counts;
  std::map<std::uint64_t, std::uint64_t> expected;
  std::mt19937_64 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t ip = random() % 3000;
    counts.add({.ip = ip, .instructions = 3}, 1 + ip % 2);
    expected[ip] += 1 + ip % 2;
  }
  const auto sorted = counts.sorted();
  ASSERT_EQ(sorted.size(), expected.size());
  auto next = expected.begin();
  for (const auto& [block, count] : sorted) {
    EXPECT_EQ(block.ip, next->first);
    EXPECT_EQ(count, next->second);
    ++next;
  }
}

TEST(BlockCounts, SeparatesSizesSpacesAndModes) {
  BlockCounts counts;
  counts.add({.ip = 1, .instructions = 1});
  counts.add({.ip = 1, .instructions = 2});
  counts.add({.ip = 1, .instructions = 1, .space = 1});
  counts.add({.ip = 1, .instructions = 1, .mode = code::insn::ExecMode::BITS32});
  counts.add({.ip = 1, .instructions = 1});
  counts.add({.ip = 1, .instructions = 1}, 0);
  EXPECT_EQ(counts.sorted().size(), 4u);
}

TEST(InstructionCounts, AddUpOverlappingBlocks) {
  BlockCounts counts;
  counts.add({.ip = kCode, .instructions = 3}, 5);
  counts.add({.ip = kCode + 1, .instructions = 1}, 2);  // left after its first instruction
  const auto found = count_instructions(counts, image_with_code());
  ASSERT_EQ(found.size(), 3u);
  const std::uint64_t ips[] = {kCode, kCode + 1, kCode + 3};
  const std::uint64_t executions[] = {5, 7, 5};
  const std::uint8_t sizes[] = {1, 2, 1};
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].ip, ips[i]);
    EXPECT_EQ(found[i].count, executions[i]);
    EXPECT_EQ(found[i].instructions, executions[i]);
    EXPECT_EQ(found[i].size, sizes[i]);
  }
}

// Blocks from all bytes of code, of all sizes: many ways to decode it, which meet and part. Counted one by
// one they are the same.
TEST(InstructionCounts, AddUpAllWaysToDecodeTheCode) {
  std::mt19937_64 random(1);
  std::vector<std::uint8_t> bytes(64);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  const code::image::Image image = image_with(bytes);
  BlockCounts counts;
  std::map<std::uint64_t, InstructionCount> expected;
  for (std::uint64_t count = 1; count <= 500; ++count) {
    BlockCounts one;
    const ExecutedBlock block{.ip = kCode + random() % bytes.size(),
                              .instructions = static_cast<std::uint32_t>(1 + random() % 12)};
    counts.add(block, count);
    one.add(block, count);
    for (const InstructionCount& found : count_instructions(one, image)) {
      InstructionCount& sum = expected[found.ip];
      sum.count += found.count;
      sum.instructions += found.instructions;
      sum.size = std::max(sum.size, found.size);
    }
  }
  const auto found = count_instructions(counts, image);
  ASSERT_EQ(found.size(), expected.size());
  auto next = expected.begin();
  for (const InstructionCount& one : found) {
    SCOPED_TRACE(one.ip - kCode);
    EXPECT_EQ(one.ip, next->first);
    EXPECT_EQ(one.count, next->second.count);
    EXPECT_EQ(one.instructions, next->second.instructions);
    EXPECT_EQ(one.size, next->second.size);
    ++next;
  }
}

TEST(InstructionCounts, KeepInstructionsWithoutCode) {
  BlockCounts counts;
  counts.add({.ip = kCode + 3, .instructions = 4}, 10);  // its code ends after one instruction
  const auto found = count_instructions(counts, image_with_code());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].instructions, 10u);
  EXPECT_EQ(found[1].ip, kCode + 4);
  EXPECT_EQ(found[1].count, 10u);
  EXPECT_EQ(found[1].instructions, 30u);
  EXPECT_EQ(found[1].size, 0u);
}

TEST(InstructionCounts, SeparateSpaces) {
  BlockCounts counts;
  counts.add({.ip = kCode, .instructions = 1, .space = 0});
  counts.add({.ip = kCode, .instructions = 1, .space = 1}, 2);
  const auto found = count_instructions(counts, image_with_code());
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].space, 0u);
  EXPECT_EQ(found[1].space, 1u);
  EXPECT_EQ(found[1].count, 2u);
}

}  // namespace
}  // namespace ptkit::tables::coverage
