#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

#include "flow/fast/code_cache_pool.h"
#include "unit/support/traces/collect.h"
#include "unit/support/traces/roundtrip.h"
#include "unit/support/traces/scene.h"

namespace ptkit::flow {
namespace {

using code::insn::ExecMode;
using trace::kAnySpace;

// A random program with calls, returns and interrupts, traced, with its code.
class Recording {
 public:
  explicit Recording(std::uint64_t seed)
      : bundle_(roundtrip::bundle_of(walk::random_walk({.seed = seed, .steps = 5000}), {})) {}

  [[nodiscard]] code::image::Image image() const { return code::image::Image(bundle_); }
  [[nodiscard]] std::string rows(const code::image::Image& image, CodeCachePool* pool) const {
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

TEST(CodeCachePoolTest, SecondDecodeDisassemblesNothing) {
  const Recording recording(7);
  const code::image::Image image = recording.image();
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

TEST(CodeCachePoolTest, StoppedDecoderReleasesCaches) {
  Scene scene(std::vector<std::uint8_t>(16, 0x90));
  scene.begin().end(0x1008);
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(scene.bytes());
  const code::image::Image image(std::make_shared<trace::TraceBundle>(scene.bundle()));
  CodeCachePool pool(image);
  {
    Collect rows;
    const FlowDecoder decoder(stream, {}, image, {}, rows, nullptr, &pool);
    EXPECT_EQ(pool.idle().caches, 0u);
  }
  EXPECT_EQ(pool.idle().caches, 1u);
}

TEST(CodeCachePoolTest, FilterSignsAreCountedByOffset) {
  for (const unsigned offsets : {1U, 2U}) {
    Scene scene({0x90, 0xff, 0xe0});  // nop; jmp rax, which disables packets
    scene.begin_off();
    for (unsigned i = 0; i < offsets; ++i) scene.pge(0x1000).pgd();
    trace::Stream stream;
    stream.data = trace::TraceBuffer::from_vector(scene.bytes());
    const code::image::Image image(std::make_shared<trace::TraceBundle>(scene.bundle()));
    CodeCachePool pool(image);
    for (const bool fast : {true, false, true}) {
      Collect rows;
      FlowOptions options;
      options.watch_filter = true;
      options.fast = fast;
      FlowDecoder decoder(stream, {}, image, options, rows, nullptr, &pool);
      while (decoder.run()) {
      }
    }
    EXPECT_EQ(pool.filter_signs(), offsets);
  }
}

std::size_t filter_signs(Scene& scene) {
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(scene.bytes());
  const code::image::Image image(std::make_shared<trace::TraceBundle>(scene.bundle()));
  CodeCachePool pool(image);
  {
    Collect rows;
    FlowOptions options;
    options.watch_filter = true;
    FlowDecoder decoder(stream, {}, image, options, rows, nullptr, &pool);
    while (decoder.run()) {
    }
  }
  return pool.filter_signs();
}

// 1000 call 1010; 1005 jmp rax; 1010 syscall
const std::vector<std::uint8_t> kCallsSyscall = {0xe8, 0x0b, 0, 0, 0, 0xff, 0xe0, 0,    0,
                                                 0,    0,    0, 0, 0, 0,    0,    0x0f, 0x05};

// What executed while packets were lost is not known: a TIP.PGE at the return address is no sign then.
TEST(CodeCachePoolTest, OverflowEndsSignOfFilter) {
  Scene without(kCallsSyscall);
  EXPECT_EQ(filter_signs(without.begin_off().pge(0x1000).pgd().pge(0x1005)), 1U);
  Scene with(kCallsSyscall);
  EXPECT_EQ(filter_signs(with.begin_off().pge(0x1000).pgd().ovf().pge(0x1005)), 0U);
}

// The last check is at a call; an overflow and a sign follow.
TEST(CodeCachePoolTest, ChecksForFilterEnd) {
  Scene scene(kCallsSyscall);
  scene.begin_off();
  for (int i = 0; i < 1023; ++i) scene.pge(0x1010).pgd();
  scene.pge(0x1000).pgd().ovf().fup(0x1005).pgd();
  for (int i = 0; i < 2000; ++i) scene.pge(0x1005).pgd();
  EXPECT_EQ(filter_signs(scene), 1U);
}

TEST(CodeCachePoolTest, CacheHasOneUser) {
  const code::image::Image image(nops(600));
  const code::image::CodeView& view = image.view(kAnySpace, 0);
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

TEST(CodeCachePoolTest, IdleMemoryIsBounded) {
  const code::image::Image image(nops(600));
  const code::image::CodeView& view = image.view(kAnySpace, 0);
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

TEST(CodeCachePoolTest, MissingCodeIsReadAgain) {
  bool has_code = false;
  const code::image::Image image(
      std::make_shared<trace::TraceBundle>(),
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
  const code::image::Image image = recording.image();
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

}  // namespace
}  // namespace ptkit::flow
