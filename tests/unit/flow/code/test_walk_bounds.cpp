// Long walks: through right code, through wrong code, the cost of many, and the amount of cached code.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <initializer_list>
#include <string>
#include <vector>

#include "flow/code/walk_guard.h"
#include "unit/support/scene.h"

namespace ptkit::flow {
namespace {

using base::Status;

constexpr std::uint64_t kCode = Scene::kCode;
constexpr std::uint64_t kSlack = 2 * BlockCache::kMaxInsns;

struct Totals : FlowSink {
  void on_block(const Block& row) override { instructions += row.insns.size(); }
  void on_error(const FlowError& row) override { errors.push_back(row.code); }
  std::uint64_t instructions = 0;
  std::vector<Status> errors;
};

Totals decode(const Scene& scene, const image::Image& image, CodeCachePool* pool = nullptr) {
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(scene.bytes());
  Totals totals;
  FlowDecoder decoder(stream, scene.configuration, image, {}, totals, nullptr, pool);
  while (decoder.run()) {
  }
  return totals;
}

Totals decode(Scene& scene) {
  return decode(scene, image::Image(std::make_shared<trace::TraceBundle>(scene.bundle())));
}

// Code wherever one looks: the same byte.
image::Image endless(std::uint8_t byte) {
  return image::Image(std::make_shared<trace::TraceBundle>(),
                      [byte](trace::SpaceId, std::uint64_t, std::span<std::uint8_t> out) {
                        std::fill(out.begin(), out.end(), byte);
                        return out.size();
                      });
}

std::vector<std::uint8_t> nops(std::size_t count) { return std::vector<std::uint8_t>(count, 0x90); }

void append(std::vector<std::uint8_t>& code, const std::vector<std::uint8_t>& more) {
  code.insert(code.end(), more.begin(), more.end());
}

void put_displacement(std::vector<std::uint8_t>& code, std::uint64_t displacement) {
  for (unsigned shift = 0; shift < 32; shift += 8)
    code.push_back(static_cast<std::uint8_t>(displacement >> shift));
}

TEST(WalkBounds, EndlessCodeEndsInError) {
  for (const std::uint8_t byte : std::initializer_list<std::uint8_t>{0x00, 0x90}) {
    for (const bool conditional : {true, false}) {
      Scene scene;
      scene.begin();
      if (conditional) {
        scene.tnt("t");
      } else {
        scene.tip(0x2000);
      }
      const Totals totals = decode(scene, endless(byte));
      ASSERT_EQ(totals.errors.size(), 1u);
      EXPECT_EQ(totals.errors[0], Status::WALK_TOO_LONG);  // endless straight code is no loop
      EXPECT_GE(totals.instructions, WalkGuard::kSure);
      EXPECT_LE(totals.instructions, WalkGuard::kSure + kSlack);
    }
  }
}

TEST(WalkBounds, LoopWithoutPacketsEndsInError) {
  for (const std::uint32_t size : {3U << 8U, 300U << 10U}) {
    std::vector<std::uint8_t> code = nops(size);
    code.push_back(0xe9);
    put_displacement(code, 0U - size - 5);
    Scene scene(code);
    const Totals totals = decode(scene.begin().tnt("t"));
    ASSERT_EQ(totals.errors.size(), 1u);
    EXPECT_EQ(totals.errors[0], Status::INFINITE_LOOP);
    EXPECT_LE(totals.instructions, WalkGuard::kSure + kSlack);
  }
}

// jz to the nop that is `kBody` before it, behind straight code of any length.
TEST(WalkBounds, LongStraightCodeIsNoError) {
  constexpr std::uint32_t kBody = 15000;
  for (const std::uint64_t straight : {5001ULL, 200'000ULL, 300'000ULL, 3'000'000ULL}) {
    std::vector<std::uint8_t> code = nops(straight + kBody);
    append(code, {0x0f, 0x84});
    put_displacement(code, 0U - kBody - 6);
    append(code, nops(4));
    Scene scene(code);
    const std::string taken(46, 't');
    scene.begin().tnt((taken + "n").c_str()).end(kCode + straight + kBody + 6);
    const Totals totals = decode(scene);
    EXPECT_TRUE(totals.errors.empty());
    EXPECT_EQ(totals.instructions, straight + kBody + 1 + 46 * (kBody + 1));
  }
}

// Code that is right is decoded alike, whatever came before it.
TEST(WalkBounds, DamageBeforeDoesNotMatter) {
  constexpr std::uint64_t kStraight = 100'000;
  for (const unsigned wild : {0U, 8U, 9U, 200U}) {
    std::vector<std::uint8_t> code = nops(kStraight);
    append(code, {0xff, 0xe0});  // jmp rax
    Scene scene(code);
    scene.put(0x4000000, std::vector<std::uint8_t>(1U << 20U)).begin(kCode + kStraight);
    for (unsigned i = 0; i < wild; ++i) scene.tip(0x4000000 + i * 4096);
    if (wild != 0) scene.fup(kCode + kStraight).tip(kCode + kStraight);
    scene.tip(kCode).tip(kCode).end(kCode);
    const Collect rows = scene.decode();
    ASSERT_EQ(rows.errors.size(), wild) << wild;
    EXPECT_TRUE(std::all_of(rows.errors.begin(), rows.errors.end(),
                            [](const FlowError& row) { return row.code == Status::NO_CODE; }));
    ASSERT_GT(rows.ips.size(), kStraight);
    EXPECT_EQ(rows.ips[rows.ips.size() - kStraight - 1], kCode);
    EXPECT_EQ(rows.branches[rows.branches.size() - 2].from_ip, kCode + kStraight);
  }
}

// Code that leads nowhere: the error is where the code ends.
TEST(WalkBounds, DeadCodeEndsWhereCodeIsMissing) {
  constexpr std::uint64_t kStraight = 300'000;
  Scene scene(nops(kStraight));
  const Collect rows = scene.begin().tip(0x9000).decode();
  ASSERT_EQ(rows.errors.size(), 1U);
  EXPECT_EQ(rows.errors[0].code, Status::NO_CODE);
  EXPECT_EQ(rows.errors[0].ip, kCode + kStraight);
  EXPECT_LE(rows.ips.size(), WalkGuard::kSure + kSlack);
}

// An event in it is found all the same, and the rows up to it are whole.
TEST(WalkBounds, EventInDeadCodeIsFound) {
  constexpr std::uint64_t kStraight = 300'000;
  Scene scene(nops(kStraight));
  scene.begin().end(kCode + kStraight - 1);
  const Totals totals = decode(scene);
  EXPECT_TRUE(totals.errors.empty());
  EXPECT_EQ(totals.instructions, kStraight - 1);
}

// Thousands of packets into large images of wrong code: each walks to the end of the image unless what it led
// to is known. A walk of all of it for each packet would take minutes; the limit is CPU time.
struct Hostile {
  const char* name;
  std::vector<std::uint8_t> pattern;
};

class HostilePackets : public testing::TestWithParam<Hostile> {};

TEST_P(HostilePackets, TakeTimeOfPacketsAndCode) {
  constexpr std::uint64_t kSize = std::uint64_t{8} << 20U;
  constexpr std::uint64_t kPackets = 1500;
  constexpr double kMostSeconds = 40;
  const std::vector<std::uint8_t>& pattern = GetParam().pattern;
  std::vector<std::uint8_t> code(kSize);
  for (std::size_t i = 0; i < kSize; ++i) code[i] = pattern[i % pattern.size()];
  Scene scene(code);
  scene.begin();
  for (std::uint64_t i = 0; i < kPackets; ++i) {
    const std::uint64_t at = kCode + i * (kSize / kPackets) / pattern.size() * pattern.size();
    scene.tip(at);
    if (i % 2 == 1) scene.fup(kCode + kSize / 2 + 1).tip(at);
  }
  const std::clock_t begin = std::clock();
  const Totals totals = decode(scene);
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, kMostSeconds);
  EXPECT_GT(totals.errors.size(), kPackets / 2);
}

INSTANTIATE_TEST_SUITE_P(All, HostilePackets,
                         testing::Values(Hostile{"zeros", {0}}, Hostile{"nops", {0x90}},
                                         Hostile{"jumps_to_the_next", {0xeb, 0x00}},
                                         Hostile{"calls_forward", {0xe8, 0x0b, 0, 0, 0, 0x90, 0x90, 0x90}},
                                         Hostile{"loops", {0xeb, 0xfe}}),
                         [](const auto& one) { return std::string(one.param.name); });

// A cache that is too large is emptied on the way of a long walk, and after a packet with a short one: then a
// branch may wait for its TIP meanwhile.
class LargeCache : public testing::TestWithParam<bool> {};

TEST_P(LargeCache, IsEmptied) {
  // Straight code fills a cache with its instructions and a block for each kMaxInsns of them.
  constexpr std::uint64_t kFull =
      BlockCache::kMostEntries / (BlockCache::kMaxInsns + 1) * BlockCache::kMaxInsns;
  const bool walk_is_long = GetParam();
  const std::uint64_t last_walk = walk_is_long ? 140'000 : WalkGuard::kSure - BlockCache::kMaxInsns;
  const std::uint64_t behind = last_walk / 2;  // instructions after the cache is full
  const std::uint64_t branch = kCode + kFull + behind;
  std::vector<std::uint8_t> code = nops(branch - kCode);
  append(code, {0x74, 0x00, 0xff, 0xe0, 0x90, 0x90});  // jz to the next instruction; jmp rax
  Scene scene(code);
  // Status of where execution is, each a long way after the one before it.
  for (std::uint64_t at = kCode; at < branch - last_walk; at += std::uint64_t{1} << 17U) scene.begin(at);
  scene.begin(branch - last_walk).tnt("nt").tip(branch).end(branch + 2);
  const image::Image image(std::make_shared<trace::TraceBundle>(scene.bundle()));
  CodeCachePool pool(image);
  const Totals totals = decode(scene, image, &pool);
  EXPECT_TRUE(totals.errors.empty());
  // jz and jmp, jz again; the jump is left open.
  EXPECT_EQ(totals.instructions, branch - kCode + 3);
  EXPECT_EQ(pool.idle().caches, 1u);
  EXPECT_LT(pool.idle().decoded, walk_is_long ? behind + kSlack : 100);
}

INSTANTIATE_TEST_SUITE_P(WalkBounds, LargeCache, testing::Bool(),
                         [](const auto& one) { return one.param ? "InLongWalks" : "AfterShortWalks"; });

// A program with a compiler: at each of many moments there is another function.
TEST(WalkBounds, CachesHaveCommonLimit) {
  constexpr std::uint64_t kMoments = 4000;
  auto bundle = std::make_shared<trace::TraceBundle>();
  for (std::uint64_t i = 0; i < kMoments; ++i) {
    trace::CodeRegion& function = bundle->code.emplace_back();
    function.address = kCode;
    function.bytes = trace::TraceBuffer::from_vector(nops(64));
    function.tsc_from = i + 1;
  }
  const image::Image image(bundle);
  CodeCaches caches(nullptr);
  std::size_t released = 0;
  std::size_t most = 0;
  caches.before_clear([&](CachedCode&) { ++released; });
  for (std::uint64_t i = 0; i < kMoments; ++i) {
    BlockCache& cache = caches.of(image.view(trace::kAnySpace, i + 1), insn::ExecMode::BITS64);
    EXPECT_EQ(cache.at(kCode).count, 64U);
    most = std::max(most, caches.bytes());
  }
  EXPECT_GT(released, kMoments / 4);
  EXPECT_LE(most, CodeCaches::kMostBytes + (std::size_t{1} << 20U));
}

}  // namespace
}  // namespace ptkit::flow
