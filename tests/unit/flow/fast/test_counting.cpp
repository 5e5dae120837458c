// The counting loop ends in the state of the loops that write rows, so that the simple decoder emits the same
// rows after both, and its counts are those of the simple decoder's branches and blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <new>
#include <random>
#include <tuple>

#include "flow/parallel/segment.h"
#include "packet/decoder.h"
#include "trace/rtit_ctl.h"
#include "unit/support/traces/roundtrip.h"
#include "unit/support/traces/scene.h"

namespace ptkit::flow {
namespace {

using roundtrip::bundle_of;
using trace_unit::generator::GeneratorConfig;

using Counts = std::map<std::tuple<std::uint64_t, std::uint64_t, BranchKind>, std::uint64_t>;

// Where a row is in the stream, and two of its values.
using Rows = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>>;

// Counts branches with known source and target, and blocks, one by one or as edges.
class Counter final : public FlowSink, private BulkSink {
 public:
  Counter(bool fast, BulkRows kind) : fast_(fast), kind_(kind) {}
  void on_context(const Context&) override {}
  void on_block(const Block& block) override {
    instructions += block.insns.size();
    add(block.span, block.ip, block.size);
    const BlockSize size{block.size, static_cast<std::uint32_t>(block.insns.size())};
    if (blocks) ++counts[{block.ip, size.to_ip(), counted_block(block.mode)}];
  }
  void on_branch(const Branch& branch) override {
    add(branch.span, branch.from_ip, branch.to_ip);
    constexpr std::uint8_t kBoth = FROM_KNOWN | TO_KNOWN;
    const bool is_indirect =
        branch.kind == BranchKind::CALL_INDIRECT || branch.kind == BranchKind::JUMP_INDIRECT;
    if ((branch.flags & kBoth) == kBoth) ++counts[{branch.from_ip, branch.to_ip, branch.kind}];
    if ((branch.flags & kBoth) == FROM_KNOWN && is_indirect)
      ++counts[{branch.from_ip, 0, half_edge(branch.kind)}];
  }
  void on_event(const Event& event) override {
    ++events;
    add(event.span, event.ip, static_cast<std::uint64_t>(event.kind));
  }
  void on_error(const FlowError& error) override {
    ++errors;
    add(error.span, error.ip, static_cast<std::uint64_t>(error.code));
  }
  void on_gap(const Gap&) override {}
  [[nodiscard]] BulkSink* bulk() override { return fast_ ? this : nullptr; }
  [[nodiscard]] bool full() const override { return pauses; }

  bool pauses = false;        // after each packet, and each pass of the fast path
  bool lacks_memory = false;  // for edges
  bool blocks = true;         // are counted
  Counts counts;
  Rows rows;  // that were emitted one by one
  std::uint64_t instructions = 0;
  std::uint64_t events = 0;
  std::uint64_t errors = 0;
  std::uint64_t bulk_bytes = 0;

 private:
  void add(const StreamSpan& span, std::uint64_t first, std::uint64_t second) {
    rows.emplace_back(span.since, span.offset, first, second);
  }
  [[nodiscard]] bool open(BulkRoom& room) override {
    room.kind = kind_;
    room.in_order = false;
    room.count_blocks = blocks;
    room.limit = SIZE_MAX;
    return true;
  }
  void close(const BulkRoom& room) override {
    instructions += room.instructions;
    events += room.events;
    bulk_bytes += room.used_bytes;
  }
  void add_edges(std::span<const EdgeCount> edges, std::uint32_t /*space*/,
                 std::uint32_t /*phase*/) override {
    if (lacks_memory) throw std::bad_alloc();
    for (const EdgeCount& edge : edges) counts[{edge.from_ip, edge.to_ip, edge.kind}] += edge.count;
  }

  bool fast_;
  BulkRows kind_;
};

struct Form {
  const char* name;
  GeneratorConfig config;
  std::size_t flush_every = 0;  // steps: see walk::trace_of()
  std::uint32_t odd_return_per_mille = 20;
  bool knows_control = false;  // DisRETC is known to be set: packets are counted in groups
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

std::vector<Form> forms() {
  GeneratorConfig plain;
  plain.psb_bytes = 512;
  plain.tsc = false;
  plain.tsc_ctc_numerator = 168;
  plain.tsc_ctc_denominator = 2;
  GeneratorConfig uncompressed = plain;
  uncompressed.return_compression = false;
  GeneratorConfig kept = plain;
  kept.tip_ret = trace_unit::generator::TipRet::KEEPS;
  GeneratorConfig tnt_64 = plain;
  tnt_64.use_tnt_64 = true;
  GeneratorConfig deferred = plain;
  deferred.deferred_tips = true;
  GeneratorConfig timing = plain;
  timing.tsc = timing.mtc = timing.cyc = true;
  return {{"plain", plain},
          {"uncompressed", uncompressed},
          {"kept", kept, 0, 200},
          {"tnt_64", tnt_64},
          {"deferred", deferred},
          {"timing", timing},
          {"partial", uncompressed, 7},
          {"partial_compressed", plain, 7},
          {"groups", uncompressed, 0, 20, true},
          {"partial_groups", uncompressed, 7, 20, true}};
}

std::vector<std::uint64_t> psbs_of(const trace::Stream& stream) {
  std::vector<std::uint64_t> psbs;
  packet::PacketDecoder packets(stream.data.bytes(), {}, {});
  for (packet::Packet packet; packets.next(packet) == base::Status::OK;) {
    if (packet.kind == packet::PacketKind::PSB) psbs.push_back(packet.offset);
  }
  return psbs;
}

class Counting : public testing::TestWithParam<Form> {
 protected:
  // A walk with calls, returns, loops and asynchronous events; TIP.PGD and TIP.PGE at `async_out`.
  static std::shared_ptr<trace::TraceBundle> bundle(std::uint64_t seed) {
    walk::WalkOptions options;
    options.seed = seed;
    options.steps = 4000;
    options.functions = 4 + static_cast<std::uint32_t>(seed % 16);
    options.odd_return_per_mille = GetParam().odd_return_per_mille;
    auto bundle = bundle_of(walk::random_walk(options), GetParam().config, GetParam().flush_every);
    if (GetParam().knows_control) trace::set_rtit_ctl(bundle->configuration, base::bit(PT_CTL_DIS_RETC));
    return bundle;
  }
};

TEST_P(Counting, StateAtPsbsIsThatOfTheOtherLoops) {
  for (unsigned round = 0; round < 8; ++round) {
    const std::uint64_t seed = 1 + round / 2;
    const bool blocks = round % 2 == 0;
    SCOPED_TRACE(testing::Message() << "seed " << seed << ", blocks " << blocks);
    const auto bundle = this->bundle(seed);
    const trace::Stream& stream = bundle->streams[0];
    const code::image::Image image(bundle);
    CodeCachePool pool(image);
    const auto decoder_of = [&](Counter& counter) {
      return std::make_unique<FlowDecoder>(stream, bundle->configuration, image, FlowOptions{}, counter,
                                           nullptr, &pool);
    };
    std::uint64_t bulk_bytes = 0;
    unsigned stops = 0;
    for (const std::uint64_t psb : psbs_of(stream)) {
      SCOPED_TRACE(psb);
      Counter edges(true, BulkRows::EDGES);
      edges.blocks = blocks;  // without them, packets are counted in groups
      Counter none(true, BulkRows::NONE);
      Counter simple(false, BulkRows::NONE);
      const auto counting = decoder_of(edges);
      const auto plain = decoder_of(none);
      const auto slow = decoder_of(simple);
      for (FlowDecoder* one : {counting.get(), plain.get(), slow.get()}) {
        one->stop_after_psb_above(psb);
        while (one->run()) {
        }
      }
      ASSERT_EQ(counting->stopped(), slow->stopped());
      EXPECT_EQ(counting->position(), slow->position());
      EXPECT_EQ(edges.instructions, simple.instructions);
      EXPECT_EQ(edges.events, simple.events);
      // Counting takes interrupts, too.
      std::sort(edges.rows.begin(), edges.rows.end());
      std::sort(none.rows.begin(), none.rows.end());
      EXPECT_TRUE(std::includes(none.rows.begin(), none.rows.end(), edges.rows.begin(), edges.rows.end()));
      bulk_bytes += edges.bulk_bytes;
      if (!counting->stopped()) continue;
      ++stops;
      const auto state = counting->checkpoint();
      EXPECT_TRUE(equivalent(state, plain->checkpoint(), {}));
      EXPECT_TRUE(equivalent(state, slow->checkpoint(), {}));
      EXPECT_TRUE(state.walk.calls == slow->checkpoint().walk.calls);
      if (HasFailure()) return;
    }
    EXPECT_GT(stops, 3U);
    EXPECT_GT(bulk_bytes, stream.data.size());
  }
}

TEST_P(Counting, CountsOfCutStreamsAreThoseOfTheSimpleDecoder) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    std::mt19937_64 random(seed);
    const auto bundle = this->bundle(seed);
    const trace::Stream whole = bundle->streams[0];
    const code::image::Image image(bundle);
    CodeCachePool pool(image);
    for (unsigned cut = 0; cut < 40; ++cut) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << ", cut " << cut);
      const base::Bytes bytes = whole.data.bytes();
      const std::size_t size = cut == 0 ? bytes.size() : random() % bytes.size();
      trace::Stream stream = whole;
      stream.data =
          trace::TraceBuffer::from_vector({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)});
      Counter edges(true, BulkRows::EDGES);
      Counter simple(false, BulkRows::NONE);
      edges.blocks = simple.blocks = cut % 2 == 0;
      for (Counter* counter : {&edges, &simple}) {
        FlowDecoder decoder(stream, bundle->configuration, image, FlowOptions{}, *counter, nullptr, &pool);
        while (decoder.run()) {
        }
      }
      EXPECT_EQ(edges.counts, simple.counts);
      std::sort(simple.rows.begin(), simple.rows.end());
      std::sort(edges.rows.begin(), edges.rows.end());
      EXPECT_TRUE(
          std::includes(simple.rows.begin(), simple.rows.end(), edges.rows.begin(), edges.rows.end()));
      EXPECT_EQ(edges.instructions, simple.instructions);
      EXPECT_EQ(edges.events, simple.events);
      EXPECT_EQ(edges.errors, simple.errors);
      if (HasFailure()) return;
    }
  }
}

// Decoders of one stream share the paths, and with them the counts that were not taken.
TEST_P(Counting, CountsOfADecoderThatEndedEarlyAreForgotten) {
  const auto bundle = this->bundle(3);
  const code::image::Image image(bundle);
  CodeCachePool pool(image);
  const auto decode = [&](Counter& counter) {
    FlowDecoder decoder(bundle->streams[0], bundle->configuration, image, FlowOptions{}, counter, nullptr,
                        &pool);
    while (decoder.run() && counter.bulk_bytes < bundle->streams[0].data.size() / 2) {
    }
    if (counter.pauses) return;
    while (decoder.run()) {
    }
  };
  for (unsigned round = 0; round < 4; ++round) {
    SCOPED_TRACE(round);
    Counter simple(false, BulkRows::NONE);
    simple.blocks = round % 2 == 0;
    decode(simple);
    Counter stopped(true, BulkRows::EDGES);
    stopped.blocks = simple.blocks;
    stopped.pauses = true;
    decode(stopped);
    EXPECT_GT(stopped.bulk_bytes, 0U);
    Counter after_stop(true, BulkRows::EDGES);
    after_stop.blocks = simple.blocks;
    decode(after_stop);
    EXPECT_EQ(after_stop.counts, simple.counts);
    Counter failed(true, BulkRows::EDGES);
    failed.blocks = simple.blocks;
    failed.lacks_memory = true;
    EXPECT_THROW(decode(failed), std::bad_alloc);
    Counter after_failure(true, BulkRows::EDGES);
    after_failure.blocks = simple.blocks;
    decode(after_failure);
    EXPECT_EQ(after_failure.counts, simple.counts);
  }
}

INSTANTIATE_TEST_SUITE_P(Walk, Counting, testing::ValuesIn(forms()),
                         [](const auto& form) { return std::string(form.param.name); });

// The simple decoder is left with the first PSB+.
TEST(CountingByHand, TakesInterruptsAndKnownState) {
  // 1000: `nop; jz 1000; ret`
  Scene scene({0x90, 0x74, 0xfd, 0xc3});
  scene.begin();
  for (unsigned i = 0; i < 20; ++i) {
    scene.tnt("tt").fup(Scene::kCode + 1).raw({0, 0}).pgd();
    scene.psb().mode(64).fup(Scene::kCode + 1).add(PacketKind::CBR, 30).psbend();  // erratum BDM70
    scene.pge(Scene::kCode + 1).tnt("tt").fup(Scene::kCode).pgd();
    scene.psb().psbend().mode(64).raw({0}).pge(Scene::kCode);
  }
  scene.raw(std::vector<std::uint8_t>(32, 0));
  const auto bundle = std::make_shared<trace::TraceBundle>(scene.bundle());
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(scene.bytes());
  const code::image::Image image(bundle);
  Counter edges(true, BulkRows::EDGES);
  Counter simple(false, BulkRows::NONE);
  for (Counter* counter : {&edges, &simple}) {
    FlowDecoder decoder(stream, bundle->configuration, image, FlowOptions{}, *counter, nullptr, nullptr);
    while (decoder.run()) {
    }
  }
  EXPECT_EQ(edges.counts, simple.counts);
  EXPECT_EQ(edges.instructions, simple.instructions);
  EXPECT_EQ(edges.events, simple.events);
  EXPECT_EQ(simple.errors, 0U);
  EXPECT_EQ(edges.rows.size(), 2U);  // status and mode
}

}  // namespace
}  // namespace ptkit::flow
