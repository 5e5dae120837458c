// The fast path emits the rows of the simple decoder, in every column of every table.
#include <gtest/gtest.h>

#include <list>
#include <random>

#include "flow/fast/path_cache.h"
#include "unit/flow/damage.h"
#include "unit/flow/fast/same_rows.h"
#include "unit/support/traces/changes.h"
#include "unit/support/traces/roundtrip.h"

namespace ptkit::flow {
namespace {

using damage::Damage;
using decoded::Reading;
using roundtrip::bundle_for;
using tables::columns::TableId;
using trace_unit::generator::GeneratorConfig;

struct Form {
  const char* name;
  GeneratorConfig config;
  std::uint32_t overflow_per_mille = 0;
  std::uint32_t odd_return_per_mille = 20;
  std::size_t flush_every = 0;  // steps: see walk::trace_of()
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

std::vector<Form> forms() {
  GeneratorConfig plain;
  plain.psb_bytes = 1024;
  plain.tsc = false;
  plain.tsc_ctc_numerator = 168;
  plain.tsc_ctc_denominator = 2;
  GeneratorConfig uncompressed = plain;
  uncompressed.return_compression = false;
  GeneratorConfig kept = plain;  // RETs that come as a TIP leave the call stack as it is
  kept.tip_ret = trace_unit::generator::TipRet::KEEPS;
  GeneratorConfig tnt_64 = plain;
  tnt_64.use_tnt_64 = true;
  GeneratorConfig deferred = plain;
  deferred.deferred_tips = true;
  GeneratorConfig tsc = plain;
  tsc.tsc = true;
  GeneratorConfig timing = tsc;
  timing.ptw = timing.fup_on_ptw = timing.mtc = timing.cyc = true;
  GeneratorConfig first_bits = timing;
  first_bits.cyc_of_first_bit = true;
  GeneratorConfig first_bits_64 = first_bits;
  first_bits_64.use_tnt_64 = true;
  first_bits_64.return_compression = false;
  GeneratorConfig everything = timing;
  everything.use_tnt_64 = everything.deferred_tips = everything.power = everything.event_trace = true;
  everything.cyc_threshold = 3;
  GeneratorConfig often_psb = timing;
  often_psb.psb_bytes = 128;
  return {{"plain", plain},
          {"uncompressed", uncompressed},
          {"kept", kept, 0, 200},
          {"tnt_64", tnt_64},
          {"deferred", deferred},
          {"tsc", tsc, 5},
          {"timing", timing, 5},
          {"everything", everything, 10},
          {"often_psb", often_psb, 10},
          {"first_bits", first_bits, 3},
          {"first_bits_64", first_bits_64},
          {"partial", timing, 0, 20, 7},
          {"partial_first_bits", first_bits, 0, 20, 7},
          {"partial_64", first_bits_64, 0, 20, 7},
          {"partial_deferred", everything, 0, 20, 7}};
}

walk::Walk walk_of(const Form& form, std::uint64_t seed, std::uint32_t steps) {
  walk::WalkOptions options;
  options.seed = seed;
  options.steps = steps;
  options.functions = 4 + static_cast<std::uint32_t>(seed % 16);
  options.overflow_per_mille = form.overflow_per_mille;
  options.odd_return_per_mille = form.odd_return_per_mille;
  options.program.dense = form.config.cyc_of_first_bit;
  return walk::random_walk(options);
}

std::shared_ptr<trace::TraceBundle> bundle_of(const Form& form, std::uint64_t seed, std::uint32_t steps) {
  return roundtrip::bundle_of(walk_of(form, seed, steps), form.config, form.flush_every);
}

// What else there is to choose.
FlowOptions some_options(std::mt19937_64& random) {
  FlowOptions options;
  options.resync = random() % 2 == 0 ? Resync::IP : Resync::PSB;
  if (random() % 2 == 0) options.errata = packet::errata_for({});
  options.ticks_over_overflow = random() % 2 == 0;
  return options;
}

BranchChoice some_choice(std::mt19937_64& random) {
  BranchChoice choice;
  choice.kinds = static_cast<std::uint32_t>(random());
  choice.taken = random() % 4 != 0;
  choice.not_taken = random() % 4 != 0;
  return choice;
}

Reading some_reading(std::mt19937_64& random) {
  constexpr std::size_t kParts[] = {1, 3, 17, 100, SIZE_MAX, SIZE_MAX};
  Reading reading;
  reading.part = kParts[random() % std::size(kParts)];
  reading.time = random() % 4 != 0;
  if (random() % 3 == 0) reading.mask = random() & random();  // few columns: often without times
  if (random() % 3 == 0) reading.selection.branches = some_choice(random);
  if (random() % 4 == 0) {
    reading.threads = 3;
    reading.segment = 256 + random() % 1024;
  }
  return reading;
}

// Ranges of addresses that packets are on in, as the configuration says; the trace need not agree.
void add_filter(trace::TraceBundle& bundle, std::mt19937_64& random) {
  for (trace::AddressRange& range : bundle.configuration.ranges) {
    const trace::CodeRegion& region = bundle.code[random() % bundle.code.size()];
    range.kind = static_cast<trace::RangeKind>(random() % 3);
    range.first = region.address + random() % region.size;
    range.last = range.first + random() % region.size;
  }
}

void add_losses(trace::Stream& stream, std::mt19937_64& random) {
  const std::uint64_t size = stream.data.size();
  for (std::uint64_t offset = random() % (size + 1); offset <= size; offset += 1 + random() % size)
    stream.losses.push_back({offset, base::Status::RING_WRAPPED, random() % 2 * 100});
}

// Switches threads of several processes, some without code, at some offsets of the first stream.
void add_switches(trace::TraceBundle& bundle, std::mt19937_64& random) {
  trace::Stream& stream = bundle.streams[0];
  bundle.spaces.resize(2);
  for (trace::CodeRegion region : std::vector(bundle.code)) {
    region.space = 1;
    if (random() % 8 != 0) bundle.code.push_back(region);
  }
  stream.switches_by_offset = true;
  const std::uint64_t size = stream.data.size();
  for (std::uint64_t at = random() % (size / 4 + 1); at < size; at += random() % (size / 8 + 1)) {
    const auto tid = static_cast<std::int64_t>(random() % 3);
    stream.switches.push_back({random(), 7, tid, random() % 4 == 0 ? 1U : trace::kAnySpace, at});
  }
}

class FastPath : public testing::TestWithParam<Form> {};

TEST_P(FastPath, EqualsSimpleDecoderWithSwitchesByOffset) {
  for (std::uint64_t seed = 1; seed <= seeds(8); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto bundle = bundle_of(GetParam(), seed, 1000);
    const FlowOptions options = some_options(random);
    add_switches(*bundle, random);
    expect_same(bundle, options);
    expect_same(bundle, options, some_reading(random));
    Reading cut;
    cut.threads = 3;
    cut.segment = 512;
    expect_same(bundle, options, cut);
    if (HasFailure()) return;
  }
}

TEST_P(FastPath, EqualsSimpleDecoderWithChangingCodeAndThreads) {
  for (std::uint64_t seed = 1; seed <= seeds(12); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto bundle = bundle_of(GetParam(), seed, 1000);
    const FlowOptions options = some_options(random);
    changes::add_at_times(*bundle, options.errata, random);
    expect_same(bundle, options);
    expect_same(bundle, options, some_reading(random));
    Reading cut;
    cut.threads = 3;
    cut.segment = 512;
    expect_same(bundle, options, cut);
    if (HasFailure()) return;
  }
}

TEST_P(FastPath, EqualsSimpleDecoder) {
  for (std::uint64_t seed = 1; seed <= seeds(2); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto bundle = bundle_of(GetParam(), seed, 3000);
    expect_same(bundle, some_options(random));
    expect_same(bundle, some_options(random), some_reading(random));
    if (HasFailure()) return;
  }
}

TEST_P(FastPath, EqualsSimpleDecoderForDamagedStreams) {
  for (std::uint64_t seed = 1; seed <= seeds(40); ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto steps = 200 + static_cast<std::uint32_t>(random() % 600);
    const auto bundle = bundle_of(GetParam(), 1 + seed % 7, steps);
    for (unsigned streams = 1 + static_cast<unsigned>(random() % 2); streams-- > 0;) {
      const base::Bytes bytes = bundle->streams[0].data.bytes();
      Damage damage({bytes.begin(), bytes.end()}, random());
      for (std::uint64_t count = 1 + random() % 5; count > 0; --count)
        damage.add(static_cast<unsigned>(random() % Damage::kKinds));
      trace::Stream stream;
      stream.data = trace::TraceBuffer::from_vector(std::move(damage.bytes()));
      bundle->streams.push_back(stream);
    }
    bundle->streams.erase(bundle->streams.begin());
    if (random() % 3 == 0) add_filter(*bundle, random);
    if (random() % 4 == 0) add_losses(bundle->streams[0], random);
    if (random() % 8 == 0) {
      bundle->configuration.rtit_ctl_known = true;
      bundle->configuration.rtit_ctl = random() % 2 << 11U | random() % 2 << 31U;
    }
    if (random() % 4 == 0) bundle->code.pop_back();
    const FlowOptions options = some_options(random);
    expect_same(bundle, options, some_reading(random));
    if (HasFailure()) return;
  }
}

// A path cache that is too large is emptied, and its counts are emitted first.
TEST_P(FastPath, EqualsSimpleDecoderWithSmallPathCache) {
  constexpr std::size_t kLittle = std::size_t{64} << 10U;
  const auto bundle = bundle_of(GetParam(), 3, 6000);
  const code::image::Image image(bundle);
  const auto bytes_with = [&](std::size_t most) {
    FlowOptions options;
    options.most_path_bytes = most;
    expect_same(bundle, options);
    Reading parts;
    parts.part = 50;
    expect_same(bundle, options, parts);
    CodeCachePool pool(image);
    Reading reading;
    reading.table = TableId::edges;
    static_cast<void>(read(bundle, image, options, &pool, reading));
    std::list<CachedCode> caches;
    pool.acquire(image.view(trace::kAnySpace, 0), code::insn::ExecMode::BITS64, 0, caches);
    const auto& paths = caches.front().paths;
    return paths != nullptr ? paths->bytes() : 0;
  };
  EXPECT_LT(bytes_with(kLittle), bytes_with(kMostPathBytes));
  static_cast<void>(bytes_with(0));
}

INSTANTIATE_TEST_SUITE_P(Walk, FastPath, testing::ValuesIn(forms()),
                         [](const auto& form) { return std::string(form.param.name); });

}  // namespace
}  // namespace ptkit::flow
