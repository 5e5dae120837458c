// Long walks: through right code, through wrong code, the cost of many, and the amount of cached code.
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "flow/code/walk_guard.h"
#include "unit/support/seconds.h"
#include "unit/support/traces/scene.h"

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

// Long straight code comes by its number of instructions.
struct Counts : Totals {
  [[nodiscard]] bool takes_straight_code() const override { return true; }
  void on_straight_code(const StreamSpan&, std::uint64_t count) override { instructions += count; }
};

template <typename Sink = Totals>
Sink decode(const Scene& scene, const code::image::Image& image, CodeCachePool* pool = nullptr) {
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(scene.bytes());
  Sink totals;
  FlowDecoder decoder(stream, scene.configuration, image, {}, totals, nullptr, pool);
  while (decoder.run()) {
  }
  return totals;
}

template <typename Sink = Totals>
Sink decode(Scene& scene) {
  return decode<Sink>(scene, code::image::Image(std::make_shared<trace::TraceBundle>(scene.bundle())));
}

// Code wherever one looks: the same byte.
code::image::Image endless(std::uint8_t byte) {
  return code::image::Image(std::make_shared<trace::TraceBundle>(),
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
  constexpr double kMostSeconds = 25;
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
  Totals totals;
  EXPECT_LT(ptkit::test::seconds_of([&] { totals = decode(scene); }), kMostSeconds);
  EXPECT_GT(totals.errors.size(), kPackets / 2);
}

INSTANTIATE_TEST_SUITE_P(All, HostilePackets,
                         testing::Values(Hostile{"zeros", {0}}, Hostile{"nops", {0x90}},
                                         Hostile{"jumps_to_the_next", {0xeb, 0x00}},
                                         Hostile{"calls_forward", {0xe8, 0x0b, 0, 0, 0, 0x90, 0x90, 0x90}},
                                         Hostile{"loops", {0xeb, 0xfe}}),
                         [](const auto& one) { return std::string(one.param.name); });

// Long code that leads to a branch: without rows of its instructions, each is passed once, and not for each
// packet. The walks begin everywhere, and some end at an event far behind.
TEST(WalkBounds, LongCodeIsPassedOnceWithoutRows) {
  constexpr std::uint64_t kSize = std::uint64_t{16} << 20U;
  constexpr std::uint64_t kRounds = 2000;
  constexpr double kMostSeconds = 15;
  std::vector<std::uint8_t> code = nops(kSize);
  append(code, {0x0f, 0x84});  // jz to the begin
  put_displacement(code, 0U - kSize - 6);
  append(code, {0xff, 0xe0});  // jmp rax
  Scene scene(code);
  scene.begin();
  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    const std::uint64_t skip = i * 4099 % kSize;
    scene.tnt("ttn").tip(kCode + skip).tnt("t").fup(kCode + kSize - i).tip(kCode);
    expected += 3 * (kSize + 1) + 1 + (kSize - skip + 1) + (kSize - i);
  }
  Counts counts;
  EXPECT_LT(ptkit::test::seconds_of([&] { counts = decode<Counts>(scene); }), kMostSeconds);
  EXPECT_TRUE(counts.errors.empty());
  EXPECT_EQ(counts.instructions, expected);
}

// What a walk passes over does not change a row: random straight code with instructions that events bind to.
TEST(WalkBounds, PassedCodeGivesSameRows) {
  struct Log : Counts {
    void note(std::uint64_t what) {
      log += std::to_string(what) + " after " + std::to_string(instructions) + "\n";
    }
    void on_branch(const Branch& row) override { note(row.from_ip); }
    void on_event(const Event& row) override { note(row.ip); }
    std::string log;
  };
  struct WholeLog : Log {
    [[nodiscard]] bool takes_straight_code() const override { return false; }
  };
  std::mt19937 random(11);
  for (int round = 0; round < 12; ++round) {
    std::vector<std::uint8_t> code;
    std::vector<std::uint64_t> ips;
    while (code.size() < 400'000) {
      ips.push_back(kCode + code.size());
      const std::uint64_t kind = random() % 20'000;
      if (kind == 0) {
        append(code, {0xf3, 0x0f, 0xae, 0xe0});  // ptwrite eax
      } else if (kind == 1) {
        append(code, {0x0f, 0x22, 0xd8});  // mov cr3, rax
      } else if (kind < 9'000) {
        append(code, nops(1));
      } else {
        append(code, {0x48, 0x89, 0xc3});
      }
    }
    const std::uint64_t branch = kCode + code.size();
    append(code, {0x0f, 0x84});
    put_displacement(code, 0U - (branch - kCode) - 6);
    append(code, {0xff, 0xe0});
    Scene scene(code);
    scene.begin();
    for (int i = 0; i < 6; ++i) {
      const std::uint64_t at = ips[random() % ips.size()];
      switch (random() % 4) {
        case 0:
          scene.tnt("t");
          break;
        case 1:
          scene.add(PacketKind::PTW, 7, 0);
          break;
        case 2:
          scene.fup(at).tip(ips[random() % ips.size()]);
          break;
        default:
          scene.pgd().pge(at);
          break;
      }
    }
    const Log passed = decode<Log>(scene);
    const WholeLog walked = decode<WholeLog>(scene);
    ASSERT_EQ(passed.log, walked.log) << round;
    ASSERT_EQ(passed.errors, walked.errors);
    ASSERT_EQ(passed.instructions, walked.instructions);
  }
}

// A walk is cancelled on its way, not at its end.
TEST(WalkBounds, LongWalkIsCancelled) {
  struct Cancelled : Totals {
    [[nodiscard]] bool full() const override { return true; }
    [[nodiscard]] bool cancelled() const override { return true; }
  };
  constexpr std::uint64_t kSize = std::uint64_t{4} << 20U;
  std::vector<std::uint8_t> code = nops(kSize);
  append(code, {0xff, 0xe0});
  Scene scene(code);
  scene.begin().tip(kCode).end(kCode);
  EXPECT_EQ(decode(scene).instructions, kSize + 1);
  EXPECT_LE(decode<Cancelled>(scene).instructions, WalkGuard::kAsk + kSlack);
}

// Events in code that leads nowhere, at addresses that it does not lead to. A search for each packet would
// take ten times as long.
TEST(WalkBounds, FailedSearchesAreNotRepeated) {
  constexpr std::uint64_t kSize = std::uint64_t{1} << 20U;
  constexpr std::uint64_t kPackets = 12'000;
  constexpr double kMostSeconds = 8;
  std::vector<std::uint8_t> code(kSize);
  for (std::size_t i = 0; i < kSize; i += 2) code[i] = 0xeb;  // jumps to the next instruction
  Scene scene(code);
  scene.begin();
  for (std::uint64_t i = 0; i < kPackets; ++i)
    scene.fup(i % 2 == 0 ? kCode + 0x18001 : 0x900000).tip(kCode + i * 2 % 1000);
  Totals totals;
  EXPECT_LT(ptkit::test::seconds_of([&] { totals = decode(scene); }), kMostSeconds);
  EXPECT_GE(totals.errors.size(), kPackets - 1);
}

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
  const code::image::Image image(std::make_shared<trace::TraceBundle>(scene.bundle()));
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
  const code::image::Image image(bundle);
  CodeCaches caches(nullptr);
  std::size_t released = 0;
  std::size_t most = 0;
  caches.before_clear([&](CachedCode&) { ++released; });
  for (std::uint64_t i = 0; i < kMoments; ++i) {
    BlockCache& cache = caches.of(image.view(trace::kAnySpace, i + 1), code::insn::ExecMode::BITS64);
    EXPECT_EQ(cache.at(kCode).count, 64U);
    most = std::max(most, caches.bytes());
  }
  EXPECT_GT(released, kMoments / 4);
  EXPECT_LE(most, CodeCaches::kMostBytes + (std::size_t{1} << 20U));
}

}  // namespace
}  // namespace ptkit::flow
