// Walks through wrong code: their length, the cost of repeated walks, and the amount of cached code.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "flow/code/walk_budget.h"
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
  std::uint64_t most_at_once = 0;  // in one call of run()
  std::vector<Status> errors;
};

Totals decode(const Scene& scene, const image::Image& image, CodeCachePool* pool = nullptr) {
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(scene.bytes());
  Totals totals;
  FlowDecoder decoder(stream, scene.configuration, image, {}, totals, nullptr, pool);
  for (bool more = true; more;) {
    const std::uint64_t before = totals.instructions;
    more = decoder.run();
    totals.most_at_once = std::max(totals.most_at_once, totals.instructions - before);
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

// Paths that were walked without success and without rows: a packet may have several.
TEST(WalkBudget, ChargesEachWalkOfPacket) {
  WalkBudget budget;
  budget.begin_packet(1000, 0);
  budget.charge(WalkBudget::kPacket, 0);
  budget.charge(1, 0);  // shorter than the one before
  for (unsigned walks = 2; walks < WalkBudget::kMost / WalkBudget::kPacket; ++walks) {
    budget.begin_packet(1000, 0);
    ASSERT_TRUE(budget.whole()) << walks;
    budget.charge(WalkBudget::kPacket, 0);
  }
  budget.begin_packet(1000, 0);
  EXPECT_FALSE(budget.whole());  // by that one instruction
  EXPECT_FALSE(budget.spent(1000 + WalkBudget::kPacket - 2));
  EXPECT_TRUE(budget.spent(1000 + WalkBudget::kPacket));
}

TEST(WalkBounds, EndlessCodeEndsInError) {
  for (const bool conditional : {true, false}) {
    Scene scene;
    scene.begin();
    if (conditional) {
      scene.tnt("t");
    } else {
      scene.tip(0x2000);
    }
    const Totals totals = decode(scene, endless(0));
    ASSERT_EQ(totals.errors.size(), 1u);
    EXPECT_EQ(totals.errors[0], Status::WALK_TOO_LONG);  // endless straight code is no loop
    EXPECT_GE(totals.instructions, WalkBudget::kPacket);
    EXPECT_LE(totals.instructions,
              WalkBudget::kPacket + WalkBudget::kPacket / WalkBudget::kBitShare + kSlack);
  }
}

TEST(WalkBounds, LoopWithoutPacketsEndsInError) {
  // A short cycle, and one that is longer than the bound: it is not known to be one.
  for (const std::uint32_t size : {3U << 10U, 300U << 10U}) {
    std::vector<std::uint8_t> code = nops(size);
    code.push_back(0xe9);
    const std::uint32_t displacement = 0U - size - 5;
    for (unsigned shift = 0; shift < 32; shift += 8)
      code.push_back(static_cast<std::uint8_t>(displacement >> shift));
    Scene scene(code);
    const Totals totals = decode(scene.begin().tnt("t"));
    ASSERT_EQ(totals.errors.size(), 1u);
    EXPECT_EQ(totals.errors[0], size < WalkBudget::kPacket ? Status::INFINITE_LOOP : Status::WALK_TOO_LONG);
    EXPECT_LE(totals.instructions, 2 * WalkBudget::kPacket);
  }
}

TEST(WalkBounds, LongStraightCodeIsNoError) {
  // 200000 nops; jz to the nop that is 15000 before it.
  constexpr std::uint64_t kStraight = 200000;
  constexpr std::uint32_t kBody = 15000;
  std::vector<std::uint8_t> code = nops(kStraight);
  const std::uint32_t displacement = 0U - kBody - 6;
  append(code, {0x0f, 0x84});
  for (unsigned shift = 0; shift < 32; shift += 8)
    code.push_back(static_cast<std::uint8_t>(displacement >> shift));
  append(code, nops(4));
  Scene scene(code);
  const std::string taken(46, 't');
  scene.begin().tnt((taken + "n").c_str()).end(kCode + kStraight + 6);
  const Totals totals = decode(scene);
  EXPECT_TRUE(totals.errors.empty());
  EXPECT_EQ(totals.instructions, kStraight + 1 + 46 * (kBody + 1));
}

TEST(WalkBounds, RepeatedErrorsReduceBudget) {
  constexpr std::uint64_t kTargets = 300;
  Scene scene;
  scene.begin();
  for (std::uint64_t i = 1; i <= kTargets; ++i) scene.tip(i << 24U);
  const Totals totals = decode(scene, endless(0));
  EXPECT_EQ(totals.errors.size(), kTargets);
  EXPECT_EQ(std::count(totals.errors.begin(), totals.errors.end(), Status::WALK_TOO_LONG),
            static_cast<std::ptrdiff_t>(kTargets));
  EXPECT_LE(totals.instructions, WalkBudget::kMost + WalkBudget::kPacket +
                                     scene.bytes().size() * WalkBudget::kPerByte +
                                     kTargets * (WalkBudget::kLeast + kSlack));
  // Whoever waits can look around in between.
  EXPECT_LE(totals.most_at_once, 2 * WalkBudget::kPacket + kSlack);
}

TEST(WalkBounds, BudgetRefillsAfterErrors) {
  constexpr std::uint64_t kFar = 100000;
  for (const bool later : {false, true}) {
    Scene scene;
    scene.begin();
    for (std::uint64_t i = 1; i <= 20; ++i) scene.tip(i << 24U);
    if (later) scene.raw(std::vector<std::uint8_t>(WalkBudget::kPacket / WalkBudget::kPerByte));  // PADs
    scene.end((20ULL << 24U) + kFar);
    const Totals totals = decode(scene, endless(0x90));
    EXPECT_EQ(totals.errors.size(), later ? 20u : 21u);
  }
}

TEST(WalkBounds, LargeCacheIsEmptied) {
  // Status of where execution is, each a long way after the one before it; then a branch that waits for its
  // TIP over the end of the cache.
  constexpr std::uint64_t kStep = std::uint64_t{1} << 17U;
  constexpr std::uint64_t kSteps = BlockCache::kMostEntries / kStep - 1;
  constexpr std::uint64_t kRest = 140000;
  constexpr std::uint64_t kBranch = kCode + kSteps * kStep + kRest;
  std::vector<std::uint8_t> code = nops(kBranch - kCode);
  append(code, {0x74, 0x00, 0xff, 0xe0, 0x90, 0x90});  // jz to the next instruction; jmp rax
  Scene scene(code);
  for (std::uint64_t i = 0; i <= kSteps; ++i) scene.begin(kCode + i * kStep);
  scene.tnt("nt").tip(kBranch).end(kBranch + 2);
  const image::Image image(std::make_shared<trace::TraceBundle>(scene.bundle()));
  CodeCachePool pool(image);
  const Totals totals = decode(scene, image, &pool);
  EXPECT_TRUE(totals.errors.empty());
  // jz and jmp, jz again; the jump is left open.
  EXPECT_EQ(totals.instructions, kBranch - kCode + 3);
  EXPECT_EQ(pool.idle().caches, 1u);
  EXPECT_LT(pool.idle().decoded, 100u);
}

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
