// Ring mode: kept trace, recorded losses, and that the kept trace can be decoded.
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "capture/linux/output/trace_ring.h"
#include "formats/registry.h"
#include "packet/decoder.h"
#include "unit/support/scratch.h"
#include "unit/support/traces/roundtrip.h"
#include "unit/support/warned.h"

namespace ptkit::capture {
namespace {

using formats::test::Scratch;
using Data = std::vector<std::uint8_t>;

// The bundle of a ring.
struct Target {
  Target() : writer(std::move(formats::PtkWriter::create(scratch.at("ring.ptk")).value())) {
    writer.metadata("{}");
  }
  trace::TraceBundle finish() {
    EXPECT_TRUE(writer.finish().ok());
    auto opened = formats::open(scratch.at("ring.ptk"), {});
    EXPECT_TRUE(opened.ok());
    for (const trace::Warning& warning : opened.value().warnings)
      EXPECT_EQ(warning.code, WarningCode::STREAM_NOT_DESCRIBED) << ::testing::PrintToString(warning);
    return std::move(opened.value());
  }
  Scratch scratch;
  formats::PtkWriter writer;
};

void append_in_parts(TraceRing& ring, std::uint32_t stream, base::Bytes data) {
  std::mt19937 random(7);
  while (!data.empty()) {
    const auto size = std::min<std::size_t>(data.size(), 1 + random() % 700);
    ring.append(stream, data.first(size));
    data = data.subspan(size);
  }
}

std::uint64_t lost(const trace::Stream& stream) {
  std::uint64_t sum = 0;
  for (const auto& loss : stream.losses) sum += loss.lost_bytes;
  return sum;
}

// Each byte of the stream equals the byte of `data` at its offset plus the losses before it.
void expect_part_of(const trace::Stream& stream, const Data& data) {
  const base::Bytes kept = stream.data.bytes();
  ASSERT_EQ(kept.size() + lost(stream), data.size());
  std::uint64_t missing = 0;
  auto loss = stream.losses.begin();
  for (std::size_t i = 0; i < kept.size(); ++i) {
    for (; loss != stream.losses.end() && loss->offset == i; ++loss) {
      missing += loss->lost_bytes;
      EXPECT_EQ(loss->cause, base::Status::RING_WRAPPED);
      EXPECT_EQ(packet::find_psb(kept, i), i) << "after a loss the stream continues at a PSB";
    }
    ASSERT_EQ(kept[i], data[i + missing]) << i;
  }
}

// A long trace and its code.
class TraceRingOfWalk : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    walk::WalkOptions options;
    options.seed = 11;
    options.steps = 60000;
    trace_unit::generator::GeneratorConfig config;
    config.psb_bytes = 2048;
    bundle_ = flow::roundtrip::bundle_of(walk::random_walk(options), config);
  }
  static void TearDownTestSuite() { bundle_.reset(); }

  static Data data() {
    const base::Bytes bytes = bundle_->streams[0].data.bytes();
    return {bytes.begin(), bytes.end()};
  }
  // Decodes the ring's stream with the walk's code.
  static flow::roundtrip::Collector decode(const trace::Stream& stream) {
    auto bundle = std::make_shared<trace::TraceBundle>(*bundle_);
    bundle->streams[0] = stream;
    return flow::roundtrip::decode(bundle, flow::roundtrip::own_engine);
  }
  static flow::roundtrip::Collector decode_all() { return decode(bundle_->streams[0]); }

  static std::shared_ptr<trace::TraceBundle> bundle_;
};

std::shared_ptr<trace::TraceBundle> TraceRingOfWalk::bundle_;

TEST_F(TraceRingOfWalk, KeepsAllWithinTheLimit) {
  const Data all = data();
  Target target;
  TraceRing ring(all.size());
  append_in_parts(ring, 0, all);
  EXPECT_EQ(ring.dropped_bytes(), 0U);
  EXPECT_EQ(ring.kept_bytes(), all.size());
  ring.finish(target.writer);
  const auto bundle = target.finish();
  EXPECT_TRUE(bundle.streams[0].losses.empty());
  expect_part_of(bundle.streams[0], all);
}

TEST_F(TraceRingOfWalk, KeepsTheEndAndDecodesFromAPsb) {
  const Data all = data();
  ASSERT_GT(all.size(), 60000U);
  constexpr std::uint64_t kRing = 16384;
  Target target;
  TraceRing ring(kRing);
  append_in_parts(ring, 0, all);
  EXPECT_LE(ring.kept_bytes(), kRing);
  ring.finish(target.writer);
  const auto bundle = target.finish();
  const trace::Stream& stream = bundle.streams[0];
  ASSERT_EQ(stream.losses.size(), 1U);
  EXPECT_EQ(lost(stream), ring.dropped_bytes());
  EXPECT_GT(stream.data.size(), kRing - 2 * 2048 - 1024);  // less a PSB period and a chunk
  expect_part_of(stream, all);

  const auto rows = decode(stream);
  EXPECT_TRUE(rows.errors.empty());
  ASSERT_FALSE(rows.gaps.empty());
  EXPECT_EQ(rows.gaps[0].cause, flow::GapCause::LOST);
  EXPECT_EQ(rows.gaps[0].code, base::Status::RING_WRAPPED);
  EXPECT_EQ(rows.gaps[0].begin, 0U);
  const auto expected = decode_all();
  ASSERT_LT(rows.ips.size(), expected.ips.size());
  EXPECT_TRUE(std::equal(rows.ips.rbegin(), rows.ips.rend(), expected.ips.rbegin()));
}

TEST_F(TraceRingOfWalk, SnapshotsContinueAtTheLastOne) {
  const Data all = data();
  const base::Bytes bytes = all;
  Target target;
  TraceRing ring(10000);
  ring.append(0, bytes.first(5000));
  ring.snapshot(target.writer);  // complete
  ring.append(0, bytes.subspan(5000, 4000));
  ring.snapshot(target.writer);  // continues without a loss
  ring.snapshot(target.writer);  // nothing new
  append_in_parts(ring, 0, bytes.subspan(9000, 30000));
  ring.snapshot(target.writer);  // continues after a loss
  append_in_parts(ring, 0, bytes.subspan(39000));
  ring.finish(target.writer);
  const auto bundle = target.finish();
  const trace::Stream& stream = bundle.streams[0];
  ASSERT_EQ(stream.losses.size(), 2U);
  EXPECT_EQ(stream.losses[0].offset, 9000U);
  EXPECT_EQ(lost(stream), ring.dropped_bytes());
  expect_part_of(stream, all);
  const auto rows = decode(stream);
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(std::count_if(rows.gaps.begin(), rows.gaps.end(),
                          [](const flow::Gap& gap) { return gap.cause == flow::GapCause::LOST; }),
            2);
}

// Filler bytes with a PSB at one offset only.
Data filler(std::size_t size, std::initializer_list<std::size_t> psbs = {}) {
  Data data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::uint8_t>(0x10 + i % 97);
  for (const std::size_t at : psbs) {
    for (std::size_t i = 0; i < 16; ++i) data[at + i] = i % 2 == 0 ? 0x02 : 0x82;
  }
  return data;
}

TEST(TraceRing, IdleThreadsKeepTheirLastPsb) {
  Target target;
  TraceRing ring(65536);
  const Data idle = filler(3000, {500, 2000});
  ring.append(1, idle);
  Data busy = filler(1000000);
  for (std::size_t at = 0; at < busy.size(); at += 4096) {
    for (std::size_t i = 0; i < 16; ++i) busy[at + i] = i % 2 == 0 ? 0x02 : 0x82;
  }
  append_in_parts(ring, 2, busy);
  EXPECT_LE(ring.kept_bytes(), 65536U);
  ring.finish(target.writer);
  const auto bundle = target.finish();
  ASSERT_EQ(bundle.streams.size(), 2U);
  expect_part_of(bundle.streams[0], idle);
  EXPECT_GE(bundle.streams[0].data.size(), 1000U);
  expect_part_of(bundle.streams[1], busy);
  EXPECT_GT(bundle.streams[1].data.size(), 50000U);
}

TEST(TraceRing, LimitsSparedChunks) {
  Target target;
  TraceRing ring(65536);
  for (std::uint32_t i = 0; i < 200; ++i) ring.append(i, filler(900, {0}));
  EXPECT_LE(ring.kept_bytes(), 65536U);
  append_in_parts(ring, 1000, filler(500000));  // a stream without any PSB
  EXPECT_LE(ring.kept_bytes(), 65536U);
  EXPECT_EQ(ring.kept_bytes() + ring.dropped_bytes(), 200U * 900 + 500000);
  ring.finish(target.writer);
  for (const auto& stream : target.finish().streams) EXPECT_GT(stream.data.size() + lost(stream), 0U);
}

TEST(TraceRing, FindsAPsbAcrossChunks) {
  for (std::size_t shift = 0; shift < 20; ++shift) {
    Target target;
    TraceRing ring(4096);  // chunks of 1024
    const Data data = filler(8192, {6144 - shift});
    append_in_parts(ring, 0, data);
    ring.snapshot(target.writer);
    const auto bundle = target.finish();
    EXPECT_EQ(lost(bundle.streams.at(0)), 6144 - shift);
    expect_part_of(bundle.streams[0], data);
  }
}

TEST(TraceRing, WritesStreamsWithoutPsbAtTheEndOnly) {
  Target target;
  TraceRing ring(4096);
  const Data data = filler(20000);
  append_in_parts(ring, 0, data);
  ring.snapshot(target.writer);
  EXPECT_GT(ring.kept_bytes(), 0U);
  ring.finish(target.writer);
  const auto bundle = target.finish();
  EXPECT_EQ(bundle.streams.at(0).data.size() + lost(bundle.streams[0]), data.size());
}

TEST(TraceRing, AppendsDuringSnapshots) {
  constexpr std::uint32_t kThreads = 3;
  Data data = filler(600000);
  for (std::size_t at = 0; at < data.size(); at += 3000) {
    for (std::size_t i = 0; i < 16; ++i) data[at + i] = i % 2 == 0 ? 0x02 : 0x82;
  }
  Target target;
  TraceRing ring(50000);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] { append_in_parts(ring, i, data); });
  for (int i = 0; i < 20; ++i) {
    ring.snapshot(target.writer);
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  ring.finish(target.writer);
  const auto bundle = target.finish();
  ASSERT_EQ(bundle.streams.size(), kThreads);
  std::uint64_t missing = 0;
  for (const auto& stream : bundle.streams) {
    expect_part_of(stream, data);
    missing += lost(stream);
  }
  EXPECT_EQ(missing, ring.dropped_bytes());
}

}  // namespace
}  // namespace ptkit::capture
