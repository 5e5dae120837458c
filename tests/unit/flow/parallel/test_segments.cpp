// Decoding from a checkpoint, or speculatively, emits the rows of a sequential decode.
#include <gtest/gtest.h>

#include <sstream>

#include "flow/decoder/state_bytes.h"
#include "flow/parallel/segment.h"
#include "packet/decoder.h"
#include "unit/support/traces/roundtrip.h"

namespace ptkit::flow {
namespace {

using roundtrip::bundle_of;
using trace_unit::generator::GeneratorConfig;

// Rows as text, so that any difference shows.
class Lines final : public FlowSink {
 public:
  void on_context(const Context&) override {}
  void on_block(const Block& row) override {
    add("block", row.span,
        {row.ip, row.insns.size(), row.size, static_cast<std::uint64_t>(row.mode), row.flags});
  }
  void on_branch(const Branch& row) override {
    add("branch", row.span, {row.from_ip, row.to_ip, static_cast<std::uint64_t>(row.kind), row.flags});
  }
  void on_event(const Event& row) override {
    add("event", row.span,
        {static_cast<std::uint64_t>(row.kind), row.ip, row.payload, row.payload2, row.payload3, row.flags});
  }
  void on_error(const FlowError& row) override {
    add("error", row.span,
        {static_cast<std::uint64_t>(row.code), row.ip, row.ip_known ? 1U : 0U, row.argument, row.argument2});
  }
  void on_gap(const Gap& row) override {
    add("gap", {row.begin, row.end},
        {row.from_ip, row.to_ip, static_cast<std::uint64_t>(row.cause), static_cast<std::uint64_t>(row.code),
         row.flags});
  }

  std::vector<std::string> lines;

 private:
  void add(const char* what, const StreamSpan& span, std::initializer_list<std::uint64_t> values) {
    std::ostringstream line;
    line << what << ' ' << span.since << ".." << span.offset << std::hex;
    for (const std::uint64_t value : values) line << ' ' << value;
    lines.push_back(line.str());
  }
};

class Recording {
 public:
  explicit Recording(std::shared_ptr<trace::TraceBundle> bundle, FlowOptions options = {})
      : bundle_(std::move(bundle)), image_(bundle_), options_(options) {}

  [[nodiscard]] const trace::Stream& stream() const { return bundle_->streams[0]; }
  [[nodiscard]] MakeDecoder maker() const {
    return [this](FlowSink& sink, time::TimeTrack* track, const FlowState* from, bool speculative) {
      if (from == nullptr)
        return std::make_unique<FlowDecoder>(stream(), bundle_->configuration, image_, options_, sink, track);
      return std::make_unique<FlowDecoder>(stream(), bundle_->configuration, image_, options_, sink, track,
                                           nullptr, *from, speculative);
    };
  }
  [[nodiscard]] std::vector<std::uint64_t> psbs() const {
    std::vector<std::uint64_t> out;
    const base::Bytes bytes = stream().data.bytes();
    for (std::uint64_t at = packet::find_psb(bytes, 0); at < bytes.size();
         at = packet::find_psb(bytes, at + 16))
      out.push_back(at);
    return out;
  }

 private:
  std::shared_ptr<trace::TraceBundle> bundle_;
  code::image::Image image_;
  FlowOptions options_;
};

void finish(RowSource& source) {
  while (source.run()) {
  }
}

struct Tally {
  unsigned cuts = 0;
  unsigned valid = 0;  // predictions
  unsigned valid_without_tip_order = 0;
  unsigned valid_with_tips_in_order = 0;
};

void expect_tail(const Lines& all, std::size_t from, const Lines& part) {
  ASSERT_EQ(all.lines.size() - from, part.lines.size());
  for (std::size_t i = 0; i < part.lines.size(); ++i) ASSERT_EQ(all.lines[from + i], part.lines[i]);
}

// At some PSBs: the state of a sequential decoder is enough to continue, and a speculative decode from there
// is valid if its prediction is.
void check_cuts(const Recording& recording, Tally& tally, std::size_t most_cuts) {
  const MakeDecoder make = recording.maker();
  const std::vector<std::uint64_t> psbs = recording.psbs();
  const std::size_t step = std::max<std::size_t>(1, psbs.size() / most_cuts);
  for (std::size_t i = 0; i < psbs.size(); i += step) {
    SCOPED_TRACE(testing::Message() << "PSB at " << psbs[i]);
    Lines all;
    const auto actual = make(all, nullptr, nullptr, false);
    actual->stop_after_psb_above(psbs[i]);
    finish(*actual);
    if (!actual->stopped()) continue;
    const std::size_t before = all.lines.size();
    const FlowState checkpoint = actual->checkpoint();
    EXPECT_TRUE(equivalent(checkpoint, checkpoint, {}));
    const std::uint64_t next = i + 2 * step < psbs.size() ? psbs[i + 2 * step] : kNoPsb;
    if (next != kNoPsb) actual->stop_after_psb_above(next);
    finish(*actual);

    Lines resumed;
    const auto again = make(resumed, nullptr, &checkpoint, false);
    if (next != kNoPsb) again->stop_after_psb_above(next);
    finish(*again);
    expect_tail(all, before, resumed);
    ASSERT_EQ(again->stopped(), actual->stopped());

    const auto is_valid = [&](const FlowState& predicted) {
      Lines predicted_rows;
      SegmentDecoder speculative(make, recording.stream(), predicted_rows, psbs[i], next, predicted);
      while (speculative.run()) {
      }
      const SegmentResult& segment = speculative.result();
      if (!segment.usable || !equivalent(segment.begin, checkpoint, segment.deps)) return false;
      expect_tail(all, before, predicted_rows);
      EXPECT_EQ(segment.at_stream_end, !actual->stopped());
      if (segment.at_stream_end) return true;
      FlowState end = segment.end;
      complete(end, checkpoint);
      EXPECT_TRUE(equivalent(end, actual->checkpoint(), {}));
      EXPECT_TRUE(end.walk.calls == actual->checkpoint().walk.calls);
      return true;
    };
    ++tally.cuts;
    FlowState predicted;
    tally.valid_without_tip_order += is_valid(predicted) ? 1U : 0U;
    predicted.events.tip_order.expect_in_order();
    tally.valid_with_tips_in_order += is_valid(predicted) ? 1U : 0U;
    predicted.events.tip_order = checkpoint.events.tip_order;
    tally.valid += is_valid(predicted) ? 1U : 0U;
  }
}

struct Variant {
  const char* name;
  GeneratorConfig config;
  std::uint32_t overflow_per_mille = 0;
  std::uint32_t odd_return_per_mille = 20;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

std::vector<Variant> variants() {
  GeneratorConfig plain;
  plain.ptw = true;
  plain.psb_bytes = 256;
  plain.tsc_ctc_numerator = 168;
  plain.tsc_ctc_denominator = 2;
  GeneratorConfig uncompressed = plain;
  uncompressed.return_compression = false;
  GeneratorConfig deferred = plain;
  deferred.deferred_tips = true;
  GeneratorConfig everything = plain;
  everything.mtc = everything.cyc = everything.fup_on_ptw = true;
  everything.use_tnt_64 = everything.deferred_tips = true;
  return {
      {"plain", plain},           {"uncompressed", uncompressed}, {"deferred_tips", deferred},
      {"everything", everything}, {"overflow", plain, 10},        {"everything_overflow", everything, 10}};
}

class Segments : public testing::TestWithParam<Variant> {};

walk::Walk walk_of(const Variant& variant, std::uint64_t seed) {
  walk::WalkOptions options;
  options.seed = seed;
  options.overflow_per_mille = variant.overflow_per_mille;
  options.odd_return_per_mille = variant.odd_return_per_mille;
  return walk::random_walk(options);
}

// A damaged file may have any value.
TEST_P(Segments, RefuseCheckpointsWithOffsetsAfterThem) {
  const auto bundle = bundle_of(walk_of(GetParam(), 1), GetParam().config);
  const Recording recording(bundle);
  Lines rows;
  const auto decoder = recording.maker()(rows, nullptr, nullptr, false);
  decoder->stop_after_psb_above(recording.psbs()[3]);
  finish(*decoder);
  ASSERT_TRUE(decoder->stopped());
  const FlowState good = decoder->checkpoint();
  const auto reads = [&](const FlowState& checkpoint) {
    FlowState out;
    return from_bytes(to_bytes(checkpoint), recording.stream(), *bundle, out);
  };
  EXPECT_TRUE(reads(good));
  const std::uint64_t position = good.packets.position;
  FlowState bad = good;
  bad.packets.position = recording.stream().data.size() + 1;
  EXPECT_FALSE(reads(bad));
  for (std::uint64_t* const offset :
       {&bad.events.psb, &bad.events.since, &bad.walk.span.since, &bad.walk.span.offset}) {
    bad = good;
    *offset = position - 1;
    EXPECT_TRUE(reads(bad));
    *offset = position;
    EXPECT_FALSE(reads(bad));
  }
  bad = good;
  bad.events.tnt_before = position;
  EXPECT_FALSE(reads(bad));
}

TEST(SegmentResult, IsNotValidWithoutStateOfItsTimes) {
  SegmentResult segment;
  segment.usable = true;
  const time::TimeTrack track({}, {}, {});
  EXPECT_TRUE(is_valid(segment, segment.begin, nullptr));
  EXPECT_FALSE(is_valid(segment, segment.begin, &track));
}

TEST_P(Segments, EqualSequentialDecodeIfPredictionIsValid) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    check_cuts(Recording(bundle_of(walk_of(GetParam(), seed), GetParam().config)), tally, 12);
  }
  EXPECT_GE(tally.cuts, 20U);
  EXPECT_GE(tally.valid * 10, tally.cuts * 9) << tally.valid << " of " << tally.cuts;
  // Both are valid somewhere: where TIPs are deferred, and where they are not and that was shown early.
  const bool deferred = GetParam().config.deferred_tips;
  EXPECT_GT(deferred ? tally.valid_without_tip_order : tally.valid_with_tips_in_order, tally.cuts / 3);
}

// Bytes are changed, dropped and doubled, near PSBs above all.
std::vector<std::uint8_t> damaged(std::vector<std::uint8_t> bytes, const std::vector<std::uint64_t>& psbs,
                                  std::mt19937_64& random) {
  for (unsigned i = 0; i < 12 && !psbs.empty(); ++i) {
    const std::uint64_t near = psbs[random() % psbs.size()] + random() % 80;
    const std::size_t at = static_cast<std::size_t>(
        random() % 3 == 0 ? random() % bytes.size() : std::min<std::uint64_t>(near, bytes.size() - 1));
    const auto where = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto count = static_cast<std::ptrdiff_t>(std::min<std::size_t>(random() % 30, bytes.size() - at));
    switch (random() % 4) {
      case 0:
        *where = static_cast<std::uint8_t>(random());
        break;
      case 1:
        bytes.erase(where, where + count);
        break;
      case 2: {
        constexpr std::uint8_t kOvf[] = {0x02, 0xf3};
        bytes.insert(where, std::begin(kOvf), std::end(kOvf));
        break;
      }
      default: {
        const std::vector<std::uint8_t> copy(where, where + count);
        bytes.insert(where, copy.begin(), copy.end());
        break;
      }
    }
  }
  return bytes;
}

TEST_P(Segments, EqualSequentialDecodeOfDamagedStreams) {
  std::mt19937_64 random(7);
  Tally tally;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const auto bundle = bundle_of(walk_of(GetParam(), seed % 3 + 1), GetParam().config);
    trace::Stream& stream = bundle->streams[0];
    const base::Bytes whole = stream.data.bytes();
    std::vector<std::uint8_t> bytes = damaged({whole.begin(), whole.end()}, Recording(bundle).psbs(), random);
    for (unsigned i = 0; i < seed % 3; ++i) {
      trace::KnownLoss loss;
      loss.offset = random() % bytes.size();
      stream.losses.push_back(loss);
    }
    std::sort(stream.losses.begin(), stream.losses.end(),
              [](const auto& a, const auto& b) { return a.offset < b.offset; });
    stream.data = trace::TraceBuffer::from_vector(std::move(bytes));
    FlowOptions options;
    options.resync = seed % 2 == 0 ? Resync::PSB : Resync::IP;
    options.ticks = seed % 4 == 0;
    check_cuts(Recording(bundle, options), tally, 10);
  }
  EXPECT_GT(tally.valid, tally.cuts / 5);
}

INSTANTIATE_TEST_SUITE_P(Walk, Segments, testing::ValuesIn(variants()),
                         [](const auto& variant) { return std::string(variant.param.name); });

// Placeholders stand for the actual entries, whether these are dropped, popped or kept.
TEST(CallStack, ReplacesPlaceholdersByActualEntries) {
  std::mt19937_64 random(3);
  const auto plausible = [](std::uint64_t) { return true; };
  for (unsigned round = 0; round < 300; ++round) {
    CallStack actual;
    for (std::uint64_t i = random() % 100; i > 0; --i) actual.call(0x1000 + i);
    actual.flush();
    const CallStack start = actual;
    CallStack with_placeholders = actual;
    with_placeholders.fill_with_placeholders();
    std::uint64_t depth = 0;  // of the stack that was flushed
    const std::uint64_t calls = 3 + random() % 4;
    for (std::uint64_t i = random() % 300; i > 0; --i) {
      if (random() % 8 < calls) {
        actual.call(i);
        with_placeholders.call(i);
        ++depth;
      } else if (random() % 2 == 0 || depth == 0) {
        actual.return_by_tip();
        with_placeholders.return_by_tip();
        depth -= depth != 0 ? 1 : 0;
      } else {
        ASSERT_EQ(with_placeholders.return_by_tnt(plausible), actual.return_by_tnt(plausible));
        --depth;
      }
      depth = std::min<std::uint64_t>(depth, ReturnStack::kDepth);
    }
    ASSERT_FALSE(with_placeholders.used_placeholder());
    with_placeholders.fill_in(start);
    EXPECT_TRUE(with_placeholders == actual);
  }
}

TEST(CallStack, ReportsUsedPlaceholder) {
  CallStack calls;
  calls.fill_with_placeholders();
  ASSERT_FALSE(calls.empty());
  (void)calls.return_by_tnt([](std::uint64_t) { return true; });
  EXPECT_TRUE(calls.used_placeholder());
}

}  // namespace
}  // namespace ptkit::flow
