// One buffer after another: maps, edges, news, errors; and code that changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <tuple>

#include "tables/coverage/coverage.h"
#include "unit/support/traces/loop_stream.h"

namespace ptkit::tables::coverage {
namespace {

using base::Status;
using flow::BranchKind;
using flow::kLoop;
using flow::loop;
using flow::Scene;

constexpr std::size_t kSize = 1U << 16U;

std::shared_ptr<trace::TraceBundle> bundle_of(std::vector<std::uint8_t> code) {
  return std::make_shared<trace::TraceBundle>(Scene(std::move(code)).bundle());
}

std::vector<std::tuple<std::uint64_t, std::uint64_t, BranchKind, std::uint64_t>> sorted(
    CoverageDecoder& decoder) {
  decoder.sort_edges();
  std::vector<std::tuple<std::uint64_t, std::uint64_t, BranchKind, std::uint64_t>> out;
  for (const Edge& edge : decoder.edges()) out.emplace_back(edge.from_ip, edge.to_ip, edge.kind, edge.count);
  return out;
}

TEST(Coverage, HashNeverChanges) {
  EXPECT_EQ(edge_hash(0, 0), 0u);
  EXPECT_EQ(edge_hash(0x1000, 0x1004), 0x27883667u);
  EXPECT_EQ(edge_hash(0x1004, 0x1000), 0xf7ad9c61u);
  EXPECT_EQ(edge_hash(0x7fffffffe123, 0xffffffff81000000), 0x6a981bd5u);
}

TEST(Coverage, BucketsEqualAfl) {
  for (unsigned count = 0; count < 256; ++count) {
    const unsigned bucket = count == 0     ? 0
                            : count == 1   ? 1
                            : count == 2   ? 2
                            : count == 3   ? 4
                            : count <= 7   ? 8
                            : count <= 15  ? 16
                            : count <= 31  ? 32
                            : count <= 127 ? 64
                                           : 128;
    EXPECT_EQ(hit_bucket(static_cast<std::uint8_t>(count)), bucket) << count;
  }
}

TEST(Coverage, CountsByHand) {
  CoverageDecoder decoder(bundle_of(kLoop));
  for (const unsigned times : {100U, 1U, 31U}) {
    std::vector<std::uint8_t> map(kSize);
    const Outcome outcome = decoder.decode(loop(times), {map, {}}).value();
    EXPECT_EQ(outcome.edges, 2u);
    EXPECT_EQ(outcome.branches, times + 1);
    EXPECT_EQ(outcome.instructions, times + 1);
    EXPECT_EQ(outcome.errors, 0u);
    EXPECT_EQ(outcome.gaps, 0u);
    EXPECT_EQ(outcome.news, News::NONE);
    const auto edges = sorted(decoder);
    ASSERT_EQ(edges.size(), 2u);
    EXPECT_EQ(edges[0], std::tuple(0x1000u, 0x1000u, BranchKind::COND, times));
    EXPECT_EQ(edges[1], std::tuple(0x1000u, 0x1002u, BranchKind::COND, 1u));
    EXPECT_EQ(map[edge_hash(0x1000, 0x1000) & 0xffffU], times);
    EXPECT_EQ(map[edge_hash(0x1000, 0x1002) & 0xffffU], 1);
    EXPECT_EQ(std::count(map.begin(), map.end(), 0), static_cast<std::ptrdiff_t>(kSize) - 2);
  }
}

TEST(Coverage, CountsSaturate) {
  CoverageDecoder decoder(bundle_of(kLoop));
  std::vector<std::uint8_t> map(kSize);
  for (const int hits : {200, 255, 255}) {
    ASSERT_TRUE(decoder.decode(loop(200), {map, {}}).ok());
    EXPECT_EQ(map[edge_hash(0x1000, 0x1000) & 0xffffU], hits);
  }
  ASSERT_TRUE(decoder.decode(loop(100000), {map, {}}).ok());
  EXPECT_EQ(map[edge_hash(0x1000, 0x1000) & 0xffffU], 255);
}

TEST(Coverage, ClearsTheMapOnRequest) {
  CoverageDecoder decoder(bundle_of(kLoop));
  std::vector<std::uint8_t> map(kSize, 7);
  Maps maps{map, {}};
  maps.clear = true;
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(decoder.decode(loop(30), maps).ok());
    EXPECT_EQ(map[edge_hash(0x1000, 0x1000) & 0xffffU], 30);
    EXPECT_EQ(std::count(map.begin(), map.end(), 0), static_cast<std::ptrdiff_t>(kSize) - 2);
  }
}

TEST(Coverage, ReportsNewEdgesAndCounts) {
  for (const bool with_hits : {false, true}) {
    CoverageDecoder decoder(bundle_of(kLoop));
    std::vector<std::uint8_t> hits(with_hits ? kSize : 0);
    std::vector<std::uint8_t> virgin(kSize, 0xff);
    const auto news = [&](unsigned times) {
      std::fill(hits.begin(), hits.end(), std::uint8_t{0});
      return decoder.decode(loop(times), {hits, virgin}).value().news;
    };
    EXPECT_EQ(news(9), News::EDGES);
    EXPECT_EQ(news(9), News::NONE);
    EXPECT_EQ(news(12), News::NONE);  // of the same bucket
    EXPECT_EQ(news(16), News::COUNTS);
    EXPECT_EQ(news(31), News::NONE);
    EXPECT_EQ(virgin[edge_hash(0x1000, 0x1000) & 0xffffU], 0xff & ~16 & ~32);
  }
}

std::vector<std::uint64_t> targets(std::span<const Edge> edges) {
  std::vector<std::uint64_t> out;
  for (const Edge& edge : edges) out.push_back(edge.to_ip);
  return out;
}

TEST(Coverage, ListsNewEdges) {
  CoverageDecoder decoder(bundle_of(kLoop));
  std::vector<std::uint8_t> virgin(kSize, 0xff);
  const auto decode = [&](const std::vector<std::uint8_t>& stream) {
    const Outcome outcome = decoder.decode(stream, {{}, virgin}).value();
    decoder.sort_edges();
    EXPECT_EQ(outcome.new_edges, decoder.new_edges().size());
    return targets(decoder.new_edges());
  };
  using Targets = std::vector<std::uint64_t>;
  EXPECT_EQ(decode(Scene().begin().tnt("n").end(0x1002).bytes()), Targets{0x1002});
  EXPECT_EQ(decode(loop(9)), Targets{0x1000});
  EXPECT_EQ(decode(loop(9)), Targets{});
  EXPECT_EQ(decode(loop(100)), Targets{});  // a new count is no new edge
  EXPECT_EQ(decoder.decode(loop(9)).value().new_edges, 0u);
}

// Of edges that share a byte, all are new or none: their order does not matter.
TEST(Coverage, NewEdgesShareBytes) {
  CoverageDecoder decoder(bundle_of(kLoop));
  std::vector<std::uint8_t> virgin(1, 0xff);
  EXPECT_EQ(decoder.decode(loop(9), {{}, virgin}).value().new_edges, 2u);
  EXPECT_EQ(decoder.decode(loop(9), {{}, virgin}).value().new_edges, 0u);
}

TEST(Coverage, RefusesOneMapAsBoth) {
  CoverageDecoder decoder(bundle_of(kLoop));
  std::vector<std::uint8_t> memory(3 * kSize / 2);
  const std::span<std::uint8_t> all(memory);
  for (const std::size_t begin : {std::size_t{0}, kSize / 2}) {
    const auto result = decoder.decode(loop(1), {all.first(kSize), all.subspan(begin, kSize)});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.failure().status, Status::BAD_CONFIG);
  }
  EXPECT_EQ(std::count(memory.begin(), memory.end(), 0), static_cast<std::ptrdiff_t>(memory.size()));
}

TEST(Coverage, JoinsChunks) {
  CoverageDecoder decoder(bundle_of(kLoop));
  const auto stream = loop(40);
  const base::Bytes whole(stream);
  for (std::size_t at = 0; at <= stream.size(); ++at) {
    const std::array<base::Bytes, 2> chunks{whole.first(at), whole.subspan(at)};
    EXPECT_EQ(decoder.decode(decoder.join(chunks)).value().branches, 41u) << at;
  }
  const std::array<base::Bytes, 3> one_has_bytes{base::Bytes(), whole, base::Bytes()};
  EXPECT_EQ(decoder.join(one_has_bytes).data(), stream.data());  // no copy
  EXPECT_TRUE(decoder.join({}).empty());
}

// Two edges of one byte count together.
TEST(Coverage, SmallMapsShareBytes) {
  CoverageDecoder decoder(bundle_of(kLoop));
  std::vector<std::uint8_t> map(1);
  ASSERT_TRUE(decoder.decode(loop(7), {map, {}}).ok());
  EXPECT_EQ(map[0], 8);
}

TEST(Coverage, RejectsMapSizes) {
  CoverageDecoder decoder(bundle_of(kLoop));
  std::vector<std::uint8_t> map(1000);
  std::vector<std::uint8_t> virgin(512, 0xff);
  EXPECT_EQ(decoder.decode(loop(1), {map, {}}).failure().status, Status::BAD_CONFIG);
  EXPECT_EQ(decoder.decode(loop(1), {{}, map}).failure().status, Status::BAD_CONFIG);
  map.resize(1024);
  EXPECT_EQ(decoder.decode(loop(1), {map, virgin}).failure().status, Status::BAD_CONFIG);
  EXPECT_EQ(std::count(map.begin(), map.end(), 0), 1024);
}

TEST(Coverage, CopiesUpToArraySize) {
  CoverageDecoder decoder(bundle_of(kLoop));
  ASSERT_TRUE(decoder.decode(loop(7)).ok());
  decoder.sort_edges();
  EXPECT_EQ(decoder.edges().size(), 2u);
  std::vector<std::uint64_t> from(1);
  std::vector<std::uint64_t> to(5, 77);
  std::vector<std::uint64_t> count(2);
  copy_edges(decoder.edges(), {from, to, {}, count});
  EXPECT_EQ(from[0], 0x1000u);
  EXPECT_EQ(to, (std::vector<std::uint64_t>{0x1000, 0x1002, 77, 77, 77}));
  EXPECT_EQ(count, (std::vector<std::uint64_t>{7, 1}));
}

TEST(Coverage, ErrorsAndGapsAreOfLastStream) {
  CoverageDecoder decoder(bundle_of(kLoop));
  const auto lost = Scene().begin(0x9000).tnt("t").tnt("t").bytes();
  const Outcome outcome = decoder.decode(lost).value();
  EXPECT_EQ(outcome.errors, 1u);
  EXPECT_EQ(outcome.gaps, 1u);
  EXPECT_EQ(outcome.edges, 0u);
  ASSERT_EQ(decoder.errors().size(), 1u);
  EXPECT_EQ(decoder.errors()[0].error.code, Status::NO_CODE);
  EXPECT_EQ(decoder.errors()[0].error.ip, 0x9000u);
  ASSERT_TRUE(decoder.decode(loop(3)).ok());
  EXPECT_TRUE(decoder.errors().empty());
  EXPECT_TRUE(decoder.gaps().empty());
  EXPECT_EQ(decoder.decode({}).value().errors, 1u);  // no PSB
  EXPECT_TRUE(decoder.edges().empty());
}

TEST(Coverage, ForgetsChangedCode) {
  std::vector<std::uint8_t> code{0x74, 0xfe, 0x90, 0x90};
  auto bundle = std::make_shared<trace::TraceBundle>();
  trace::CodeRegion region;
  region.address = 0x1000;
  region.size = code.size();
  region.bytes = trace::TraceBuffer(code, nullptr);
  bundle->code.push_back(region);
  CoverageDecoder decoder(bundle);
  ASSERT_TRUE(decoder.decode(loop(3)).ok());
  code[0] = 0x75;  // jnz
  code[1] = 0xff;  // 1001: the rest of it is another instruction
  code[2] = 0xc0;  // inc eax
  decoder.forget(0x2000, 0x3000);
  decoder.forget(0x1001, 0x1001);
  const auto stream = Scene().begin().tnt("t").end(0x1003).bytes();
  ASSERT_EQ(decoder.decode(stream).value().errors, 0u);
  const auto edges = sorted(decoder);
  ASSERT_EQ(edges.size(), 1u);
  EXPECT_EQ(edges[0], std::tuple(0x1000u, 0x1001u, BranchKind::COND, 1u));

  decoder.set_bundle(bundle_of(kLoop));
  EXPECT_EQ(decoder.decode(loop(3)).value().errors, 0u);
}

TEST(Coverage, StopsAndStartsAnew) {
  CoverageDecoder decoder(bundle_of(kLoop));
  const auto stream = loop(6000000);
  const auto never = [] { return false; };
  EXPECT_FALSE(decoder.decode(stream, {}, never).value().whole);
  const Outcome outcome = decoder.decode(loop(5), {}, never).value();
  EXPECT_TRUE(outcome.whole);
  EXPECT_EQ(outcome.branches, 6u);  // nothing is left of the one before
}

TEST(Coverage, StopsWithinAPacket) {
  constexpr std::uint32_t kJumps = 1U << 20U;
  std::vector<std::uint8_t> code(std::size_t{2} * kJumps);
  for (std::size_t i = 0; i < code.size(); i += 2) code[i] = 0xeb;  // jumps to the next instruction
  code.insert(code.end(), {0xff, 0xe0});
  CoverageDecoder decoder(bundle_of(code));
  const auto stream = Scene().begin().tip(Scene::kCode).bytes();
  EXPECT_EQ(decoder.decode(stream).value().instructions, kJumps + 1);
  const Outcome outcome = decoder.decode(stream, {}, [] { return false; }).value();
  EXPECT_FALSE(outcome.whole);
  EXPECT_LT(outcome.instructions, kJumps / 2);
}

// Enough edges that the hash tables grow while counting; every stream has known and new edges.
TEST(Coverage, EqualsTheSimpleDecoder) {
  std::vector<std::uint8_t> code;
  for (int i = 0; i < 2048; ++i) code.insert(code.end(), {0xff, 0xe0});  // jmp rax
  const auto bundle = bundle_of(code);
  CoverageDecoder fast(bundle);
  flow::FlowOptions options;
  options.fast = false;
  CoverageDecoder simple(bundle, options);
  std::uint64_t random = 1;
  for (int round = 0; round < 8; ++round) {
    Scene scene;
    scene.begin();
    for (int i = 0; i < 700; ++i) {
      random = random * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto range = static_cast<std::uint64_t>(i % 3 == 0 ? 2048 : 16);
      scene.tip(0x1000 + (random >> 33U) % range * 2);
      if (i % 100 == 99) scene.begin(0x1000 + (random >> 33U) % range * 2);
    }
    ASSERT_EQ(fast.decode(scene.bytes()).value().errors, 0u);
    ASSERT_TRUE(simple.decode(scene.bytes()).ok());
    EXPECT_EQ(sorted(fast), sorted(simple));
  }
}

}  // namespace
}  // namespace ptkit::tables::coverage
