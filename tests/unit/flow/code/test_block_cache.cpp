// Runs of a cache against instructions decoded one by one.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "flow/code/block_cache.h"

namespace ptkit::flow {
namespace {

using base::Status;
using code::insn::ExecMode;
using code::insn::InsnClass;

constexpr std::uint64_t kCode = 0x40'1000;

// Bytes in which blocks of all kinds and lengths are found: instructions, some of them cut, and noise.
std::vector<std::uint8_t> code_of(std::size_t size, std::uint64_t seed) {
  const std::vector<std::vector<std::uint8_t>> kPieces = {{0x90},
                                                          {0x48, 0x89, 0xE5},
                                                          {0x0F, 0x1F, 0x44, 0x00, 0x00},
                                                          {0x74, 0x10},
                                                          {0xE8, 0x20, 0, 0, 0},
                                                          {0xC3},
                                                          {0xEB, 0x05},
                                                          {0xFF, 0xE0},
                                                          {0x0F, 0x05},
                                                          {0xC5, 0xF9, 0x6F, 0x07},
                                                          {0xF0, 0x48, 0x0F, 0xB1, 0x0E},
                                                          {0x48, 0xB8, 1, 2, 3, 4, 5, 6, 7, 8},
                                                          {0x0F, 0x84, 0x10, 0, 0, 0},
                                                          {0xE8, 0, 0, 0, 0}};
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> code;
  while (code.size() < size) {
    if (random() % 16 == 0) {
      code.push_back(static_cast<std::uint8_t>(random()));
      continue;
    }
    // Straight code is more frequent than branches.
    const auto& piece = kPieces[random() % 3 != 0 ? random() % 3 : random() % kPieces.size()];
    code.insert(code.end(), piece.begin(), piece.end());
  }
  code.resize(size);
  return code;
}

// The code in regions of `sizes`, in turn; everything in one if there are none.
code::image::Image image_of(const std::vector<std::uint8_t>& code,
                            const std::vector<std::size_t>& sizes = {}) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  const auto all = trace::TraceBuffer::from_vector(code);
  std::size_t turn = 0;
  for (std::size_t at = 0; at < code.size();) {
    const std::size_t wanted = sizes.empty() ? code.size() : sizes[turn++ % sizes.size()];
    trace::CodeRegion region;
    region.address = kCode + at;
    region.bytes = all.slice(at, std::min(wanted, code.size() - at));
    region.size = region.bytes.size();
    at += region.size;
    bundle->code.push_back(std::move(region));
  }
  return code::image::Image(bundle);
}

// A block as the definition has it.
struct Expected {
  std::vector<BlockInsn> insns;
  std::uint64_t next_ip = 0;
  InsnClass last = InsnClass::OTHER;
  Status failure = Status::OK;
};

Expected expected_run(const std::vector<std::uint8_t>& code, ExecMode mode, std::uint64_t ip) {
  Expected block;
  block.next_ip = ip;
  while (block.insns.size() < BlockCache::kMaxInsns) {
    const std::uint64_t skip = block.next_ip - kCode;
    code::insn::Insn insn;
    const Status status = skip < code.size()
                              ? code::insn::decode_exactly(mode, base::Bytes(code).subspan(skip), insn)
                              : Status::NO_CODE;
    if (status != Status::OK) {
      if (block.insns.empty()) block.failure = status;
      return block;
    }
    block.insns.push_back({insn.size, insn.cls, insn.kind});
    block.next_ip += insn.size;
    block.last = insn.cls;
    if (insn.cls >= InsnClass::COND_JUMP && insn.cls <= InsnClass::FAR_JUMP) return block;
  }
  return block;
}

void expect_same(const BlockCache& cache, const BasicBlock& block, const Expected& want) {
  ASSERT_EQ(block.count, want.insns.size()) << block.ip;
  EXPECT_EQ(block.next_ip, want.next_ip);
  EXPECT_EQ(block.size, want.next_ip - block.ip);
  EXPECT_EQ(block.failure, want.failure);
  EXPECT_EQ(block.end == Terminator::FAIL, want.insns.empty());
  const auto insns = cache.insns(block);
  for (std::size_t i = 0; i < insns.size(); ++i) {
    ASSERT_EQ(insns[i].size, want.insns[i].size);
    ASSERT_EQ(insns[i].cls, want.insns[i].cls);
    ASSERT_EQ(insns[i].kind, want.insns[i].kind);
  }
  if (!insns.empty()) {
    EXPECT_EQ(block.last_ip, want.next_ip - insns.back().size);
    EXPECT_EQ(block.kind, insns.back().kind);
    if (want.last != InsnClass::OTHER && want.last != InsnClass::PTWRITE) {
      EXPECT_EQ(block.branch, branch_kind(want.last, block.kind));
    }
  }
}

// Every address once, in an order that has nothing to do with where blocks overlap.
std::vector<std::uint64_t> addresses(std::size_t size) {
  std::vector<std::uint64_t> all(size + 2);
  std::iota(all.begin(), all.end(), kCode - 1);
  std::shuffle(all.begin(), all.end(), std::mt19937_64(5));
  return all;
}

class InEachMode : public testing::TestWithParam<ExecMode> {};

TEST_P(InEachMode, BlocksEqualTheirInstructions) {
  const auto code = code_of(3000, 1);
  const code::image::Image image = image_of(code);
  BlockCache cache(image.view(trace::kAnySpace, 0), GetParam());
  for (const std::uint64_t ip : addresses(code.size()))
    expect_same(cache, cache.at(ip), expected_run(code, GetParam(), ip));
  EXPECT_EQ(cache.entries(), cache.decoded() + code.size() + 2);
  // Once more, now that all are there.
  const std::size_t decoded = cache.decoded();
  for (const std::uint64_t ip : addresses(code.size())) EXPECT_EQ(cache.at(ip).ip, ip);
  EXPECT_EQ(cache.decoded(), decoded);
}

// Recorders save executed code in many chunks.
TEST_P(InEachMode, ImageChunksDoNotMatter) {
  const auto code = code_of(3000, 2);
  for (const std::vector<std::size_t>& sizes :
       {std::vector<std::size_t>{1}, {3, 1, 20, 7}, {14, 15, 16}, {64, 2}}) {
    const code::image::Image image = image_of(code, sizes);
    BlockCache cache(image.view(trace::kAnySpace, 0), GetParam());
    for (const std::uint64_t ip : addresses(code.size()))
      expect_same(cache, cache.at(ip), expected_run(code, GetParam(), ip));
  }
}

INSTANTIATE_TEST_SUITE_P(BlockCacheTest, InEachMode,
                         testing::Values(ExecMode::BITS64, ExecMode::BITS32, ExecMode::BITS16));

TEST(BlockCacheTest, LongestBlocks) {
  std::vector<std::uint8_t> code(2000, 0x90);
  code.back() = 0xc3;
  const code::image::Image image = image_of(code);
  BlockCache cache(image.view(trace::kAnySpace, 0), ExecMode::BITS64);
  EXPECT_EQ(cache.at(kCode).count, BlockCache::kMaxInsns);
  EXPECT_EQ(cache.at(kCode).end, Terminator::FALL);
  EXPECT_EQ(cache.next(cache.at(kCode)).ip, kCode + BlockCache::kMaxInsns);
  const flow::BasicBlock& last = cache.at(kCode + code.size() - BlockCache::kMaxInsns);
  EXPECT_EQ(last.count, BlockCache::kMaxInsns);
  EXPECT_EQ(last.end, Terminator::RETURN);
}

TEST(BlockCacheTest, ClearEmptiesCache) {
  const auto code = code_of(5000, 3);
  const code::image::Image image = image_of(code);
  BlockCache cache(image.view(trace::kAnySpace, 0), ExecMode::BITS64);
  const std::size_t empty = cache.bytes();
  for (const std::uint64_t ip : addresses(code.size())) (void)cache.at(ip);
  EXPECT_GT(cache.bytes(), empty + 5000 * sizeof(flow::BasicBlock));
  cache.clear();
  EXPECT_EQ(cache.entries(), 0u);
  EXPECT_EQ(cache.bytes(), empty);
  expect_same(cache, cache.at(kCode), expected_run(code, ExecMode::BITS64, kCode));
}

TEST(IpIndexTest, FindsInsertedIps) {
  base::Arena arena;
  IpIndex index(arena);
  std::vector<std::uint64_t> ips;
  std::mt19937_64 random(9);
  for (std::uint32_t number = 0; number < 40'000; ++number) {
    // Neighbours, pages, and anything: none twice.
    ips.push_back(number % 3 == 0   ? number
                  : number % 3 == 1 ? std::uint64_t{number} << 12U
                                    : random() | 1ULL << 63U);
    index.put(ips.back(), number);
  }
  const auto is_there = [&ips](std::uint64_t ip) {
    return [&ips, ip](std::uint32_t number) { return ips[number] == ip; };
  };
  for (std::uint32_t number = 0; number < ips.size(); ++number)
    ASSERT_EQ(index.find(ips[number], is_there(ips[number])), number);
  EXPECT_EQ(index.find(0x7000'0000'0001, is_there(0x7000'0000'0001)), IpIndex::kNone);
}

TEST(ArenaTest, BlocksDoNotOverlap) {
  base::Arena arena;
  struct Block {
    std::uint8_t* bytes;
    std::size_t size;
    std::uint8_t mark;
  };
  std::vector<Block> blocks;
  std::mt19937 random(5);
  const auto deallocate = [&arena](const Block& block) {
    EXPECT_EQ(std::count(block.bytes, block.bytes + block.size, block.mark), std::ptrdiff_t(block.size));
    arena.deallocate(block.bytes, block.size);
  };
  for (int i = 0; i < 3000; ++i) {
    const std::size_t size = random() % (std::size_t{1} << random() % 18U) + (i % 1000 == 0 ? 3U << 19U : 1U);
    const auto mark = static_cast<std::uint8_t>(i);
    auto* const bytes = static_cast<std::uint8_t*>(arena.allocate(size));
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(bytes) % 64, 0u);
    std::fill_n(bytes, size, mark);
    blocks.push_back({bytes, size, mark});
    if (random() % 3 == 0) continue;
    std::swap(blocks[random() % blocks.size()], blocks.back());
    deallocate(blocks.back());
    blocks.pop_back();
  }
  EXPECT_LT(arena.bytes(), std::size_t{64} << 20U);
  for (const Block& block : blocks) deallocate(block);
  arena.clear();
  EXPECT_LE(arena.bytes(), std::size_t{1} << 20U);
}

TEST(ChunksTest, PartsAreContiguous) {
  base::Arena arena;
  Chunks<std::uint32_t, 16> list(arena);
  std::vector<std::size_t> starts;
  for (std::uint32_t i = 0; i < 100; ++i) {
    const std::span<std::uint32_t> room = list.room(10);
    starts.push_back(list.end());
    for (std::uint32_t k = 0; k < i % 11; ++k) room[k] = i * 100 + k;
    list.keep(i % 11);
  }
  for (std::uint32_t i = 0; i < 100; ++i) {
    const auto part = list.part(starts[i], i % 11);
    ASSERT_EQ(part.size(), i % 11);
    for (std::uint32_t k = 0; k < part.size(); ++k) EXPECT_EQ(part[k], i * 100 + k);
  }
  EXPECT_EQ(list.size(), 9u * 55);
  list.clear();
  EXPECT_EQ(list.size(), 0u);
  list.add() = 7;
  EXPECT_EQ(list[0], 7u);
}

}  // namespace
}  // namespace ptkit::flow
