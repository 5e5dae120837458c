#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "collect.h"
#include "flow/code_cache_pool.h"
#include "roundtrip.h"
#include "scene.h"

namespace ptkit::flow {
namespace {

using insn::ExecMode;
using trace::kAnySpace;

// A random program with calls, returns and interrupts, traced, with its code.
class Recording {
 public:
  explicit Recording(std::uint64_t seed)
      : bundle_(roundtrip::bundle_of(walk::random_walk({.seed = seed, .steps = 5000}), {})) {}

  [[nodiscard]] image::Image image() const { return image::Image(bundle_); }
  [[nodiscard]] std::string rows(const image::Image& image, CodeCachePool* pool) const {
    Collect rows;
    FlowDecoder decoder(bundle_->streams[0], bundle_->configuration, image, {}, rows, nullptr, pool);
    while (decoder.run()) {
    }
    return rows.log;
  }

 private:
  std::shared_ptr<trace::TraceBundle> bundle_;
};

std::shared_ptr<trace::TraceBundle> nops(std::size_t size) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  trace::CodeRegion region;
  region.address = 0x1000;
  region.size = size;
  region.bytes = trace::TraceBuffer::from_vector(std::vector<std::uint8_t>(size, 0x90));
  bundle->code.push_back(region);
  return bundle;
}

TEST(CodeCachePoolTest, ASecondDecodeDisassemblesNothing) {
  const Recording recording(7);
  const image::Image image = recording.image();
  const std::string expected = recording.rows(image, nullptr);
  CodeCachePool pool(image);
  EXPECT_EQ(pool.idle().caches, 0u);
  EXPECT_EQ(recording.rows(image, &pool), expected);
  const CodeCachePool::Figures first = pool.idle();
  EXPECT_EQ(first.caches, 1u);
  EXPECT_GT(first.decoded, 20u);
  EXPECT_EQ(recording.rows(image, &pool), expected);
  EXPECT_EQ(pool.idle().caches, 1u);
  EXPECT_EQ(pool.idle().decoded, first.decoded);
}

TEST(CodeCachePoolTest, ADecoderThatStopsEarlyGivesBackToo) {
  Scene scene(std::vector<std::uint8_t>(16, 0x90));
  scene.begin().end(0x1008);
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(scene.bytes());
  const image::Image image(std::make_shared<trace::TraceBundle>(scene.bundle()));
  CodeCachePool pool(image);
  {
    Collect rows;
    const FlowDecoder decoder(stream, {}, image, {}, rows, nullptr, &pool);
    EXPECT_EQ(pool.idle().caches, 0u);
  }
  EXPECT_EQ(pool.idle().caches, 1u);
}

TEST(CodeCachePoolTest, NoTwoBorrowersHaveTheSameCache) {
  const image::Image image(nops(600));
  const image::CodeView& view = image.view(kAnySpace, 0);
  CodeCachePool pool(image);
  std::size_t most = 0;
  {
    CodeCaches one(&pool);
    CodeCaches two(&pool);
    EXPECT_EQ(&one.of(view, ExecMode::BITS64), &one.of(view, ExecMode::BITS64));
    EXPECT_NE(&one.of(view, ExecMode::BITS64), &two.of(view, ExecMode::BITS64));
    EXPECT_NE(&one.of(view, ExecMode::BITS64), &one.of(view, ExecMode::BITS32));
    (void)one.of(view, ExecMode::BITS64).at(0x1010);
    (void)two.of(view, ExecMode::BITS64).at(0x1200);
    most = one.of(view, ExecMode::BITS64).decoded();
    EXPECT_GT(most, two.of(view, ExecMode::BITS64).decoded());
  }
  EXPECT_EQ(pool.idle().caches, 3u);
  // Who comes next gets the one that knows most.
  CodeCaches next(&pool);
  EXPECT_EQ(next.of(view, ExecMode::BITS64).decoded(), most);
  EXPECT_EQ(pool.idle().caches, 2u);
}

TEST(CodeCachePoolTest, MemoryOfWhatNobodyUsesIsBounded) {
  const image::Image image(nops(600));
  const image::CodeView& view = image.view(kAnySpace, 0);
  const std::size_t one = BlockCache(view, ExecMode::BITS64).bytes();
  EXPECT_GT(one, 1000u);
  CodeCachePool pool(image, 2 * one + one / 2);
  {
    std::array<CodeCaches, 3> all{CodeCaches(&pool), CodeCaches(&pool), CodeCaches(&pool)};
    for (CodeCaches& caches : all) (void)caches.of(view, ExecMode::BITS64);
  }
  EXPECT_EQ(pool.idle().caches, 2u);
  EXPECT_EQ(pool.idle().bytes, 2 * one);
  CodeCachePool small(image, one - 1);
  { (void)CodeCaches(&small).of(view, ExecMode::BITS64); }
  EXPECT_EQ(small.idle().caches, 0u);
}

TEST(CodeCachePoolTest, CodeThatWasMissingIsAskedForAgain) {
  bool has_code = false;
  const image::Image image(std::make_shared<trace::TraceBundle>(),
                           [&](trace::SpaceId, std::uint64_t, std::span<std::uint8_t> out) -> std::size_t {
                             std::fill(out.begin(), out.end(), std::uint8_t{0x90});
                             return has_code ? out.size() : 0;
                           });
  Scene scene;
  scene.begin().end(0x1008);
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(scene.bytes());
  CodeCachePool pool(image);
  const auto decode = [&] {
    Collect rows;
    FlowDecoder decoder(stream, {}, image, {}, rows, nullptr, &pool);
    while (decoder.run()) {
    }
    return rows;
  };
  EXPECT_EQ(decode().errors.size(), 1u);
  EXPECT_EQ(pool.idle().caches, 0u);
  has_code = true;
  EXPECT_TRUE(decode().errors.empty());
  EXPECT_EQ(decode().ips.size(), 8u);
  EXPECT_EQ(pool.idle().caches, 1u);
}

TEST(CodeCachePoolTest, ServesThreads) {
  constexpr std::size_t kThreads = 4;
  constexpr unsigned kRounds = 6;
  const Recording recording(3);
  const image::Image image = recording.image();
  const std::string expected = recording.rows(image, nullptr);
  CodeCachePool pool(image);
  std::array<unsigned, kThreads> right{};
  std::vector<std::thread> threads;
  for (unsigned& count : right) {
    threads.emplace_back([&] {
      for (unsigned round = 0; round < kRounds; ++round) count += recording.rows(image, &pool) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const unsigned count : right) EXPECT_EQ(count, kRounds);
  EXPECT_GE(pool.idle().caches, 1u);
  EXPECT_LE(pool.idle().caches, kThreads);
}

// A library with a build-id, all of whose code is executed in one run of 512 instructions after the other.
std::shared_ptr<trace::TraceBundle> library(std::uint8_t filler) {
  auto bundle = nops(20'000);
  auto code = std::vector<std::uint8_t>(20'000, filler);
  bundle->files.push_back({"/lib/some.so", "00112233445566778899", {}, {}});
  bundle->code[0].bytes = trace::TraceBuffer::from_vector(std::move(code));
  bundle->code[0].file = 0;
  bundle->code[0].file_offset = 0x3000;
  return bundle;
}

CodeCachePool::Figures decode_library(std::uint8_t filler, const std::string& folder,
                                      std::vector<BlockInsn>* insns = nullptr) {
  const image::Image image(library(filler));
  CodeCachePool pool(image, CodeCachePool::kMostBytes, image::CodeFolder(folder));
  {
    CodeCaches caches(&pool);
    BlockCache& cache = caches.of(image.view(kAnySpace, 0), ExecMode::BITS64);
    for (std::uint64_t ip = 0x1000; ip < 0x1000 + 20'000; ip += 300) {
      const auto found = cache.insns(cache.at(ip));
      if (insns != nullptr) insns->insert(insns->end(), found.begin(), found.end());
    }
  }
  return pool.idle();
}

TEST(CodeCachePoolTest, AnotherProcessDecodesLittle) {
  std::string folder = (std::filesystem::temp_directory_path() / "ptkit-pool-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::vector<BlockInsn> want;
  std::vector<BlockInsn> got;
  const CodeCachePool::Figures first = decode_library(0x90, folder, &want);
  EXPECT_EQ(first.recalled, 0u);
  const CodeCachePool::Figures second = decode_library(0x90, folder, &got);
  EXPECT_EQ(second.decoded, first.decoded);
  EXPECT_EQ(second.recalled, first.decoded);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].size, want[i].size);
    ASSERT_EQ(got[i].cls, want[i].cls);
  }
  // The same build-id, other bytes: nothing of it is believed.
  EXPECT_EQ(decode_library(0xC3, folder).recalled, 0u);
  // Off, and where nothing can be written.
  EXPECT_EQ(decode_library(0x90, "").recalled, 0u);
  EXPECT_EQ(decode_library(0x90, "/dev/null/code").recalled, 0u);
  std::filesystem::remove_all(folder);
}

TEST(CodeCachePoolTest, LittleIsNotWritten) {
  std::string folder = (std::filesystem::temp_directory_path() / "ptkit-pool-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  {
    const image::Image image(library(0x90));
    CodeCachePool pool(image, CodeCachePool::kMostBytes, image::CodeFolder(folder));
    CodeCaches caches(&pool);
    (void)caches.of(image.view(kAnySpace, 0), ExecMode::BITS64).at(0x1000);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ptkit::flow
