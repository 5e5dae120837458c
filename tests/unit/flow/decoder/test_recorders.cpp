// Streams of the software trace unit in the forms in which other systems' recorders save them.
#include <gtest/gtest.h>

#include "formats/registry.h"
#include "unit/support/scratch.h"
#include "unit/support/traces/roundtrip.h"

namespace ptkit::flow {
namespace {

using formats::test::Scratch;
using roundtrip::bundle_of;
using roundtrip::Collector;
using roundtrip::own_engine;

std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

walk::Walk walk_of(std::uint64_t seed, std::uint32_t steps) {
  walk::WalkOptions options;
  options.seed = seed;
  options.steps = steps;
  return walk::random_walk(options);
}

std::shared_ptr<trace::TraceBundle> opened(const std::string& path) {
  auto bundle = formats::open(path, {});
  EXPECT_TRUE(bundle.ok()) << bundle.failure().detail;
  return std::make_shared<trace::TraceBundle>(bundle.ok() ? std::move(bundle.value()) : trace::TraceBundle{});
}

void add_code(trace::TraceBundle& bundle, const walk::Walk& walk, trace::SpaceId space) {
  for (const walk::CodeRegion& code : walk.program.regions) {
    if (code.bytes.empty()) continue;
    trace::CodeRegion region;
    region.space = space;
    region.address = code.address;
    region.size = code.bytes.size();
    region.bytes = trace::TraceBuffer::from_vector(code.bytes);
    bundle.code.push_back(std::move(region));
  }
}

void expect_same_flow(const Collector& got, const Collector& wanted) {
  EXPECT_EQ(got.ips, wanted.ips);
  ASSERT_EQ(got.branches.size(), wanted.branches.size());
  for (std::size_t i = 0; i < got.branches.size(); ++i) {
    ASSERT_EQ(got.branches[i].from_ip, wanted.branches[i].from_ip) << i;
    ASSERT_EQ(got.branches[i].to_ip, wanted.branches[i].to_ip) << i;
  }
}

TEST(Recorders, IpttoolRingWraps) {
  constexpr std::size_t kRing = 4096;
  constexpr std::size_t kHeader = 28;
  trace_unit::generator::GeneratorConfig config;
  config.psb_bytes = 256;
  const walk::Walk walk = walk_of(3, 30000);
  const std::string whole = text_of(walk::trace_of(walk, config));
  ASSERT_GT(whole.size(), 3 * kRing);
  const Scratch scratch;
  for (const std::size_t written : {kRing, kRing + 1, 2 * kRing - 5, 3 * kRing - 1000}) {
    SCOPED_TRACE(written);
    const std::size_t at = written % kRing;  // position of the next byte
    const std::string last = whole.substr(written - kRing, kRing);
    const std::string ring = last.substr(kRing - at) + last.substr(0, kRing - at);
    std::string header(kHeader, '\0');
    header[0] = 7;
    header[20] = static_cast<char>(at & 0xff);
    header[21] = static_cast<char>(at >> 8U);
    header[25] = kRing >> 8U;
    const auto bundle = opened(scratch.write("threads.pt", header + ring));
    EXPECT_EQ(bundle->format, "ipttool");
    add_code(*bundle, walk, trace::kAnySpace);
    auto plain = bundle_of(walk, config);
    plain->streams[0].data = trace::TraceBuffer::from_vector({last.begin(), last.end()});
    plain->configuration.clock = {};
    const Collector rows = roundtrip::decode(bundle, own_engine);
    EXPECT_GT(rows.ips.size(), 1000U);
    expect_same_flow(rows, roundtrip::decode(plain, own_engine));
  }
}

}  // namespace
}  // namespace ptkit::flow
