// The fast path of packet generation writes the bytes of the calls.
#include <gtest/gtest.h>

#include <random>

#include "unit/support/traces/walk.h"
#include "unit/support/units/traced_unit.h"

namespace ptkit::trace_unit::generator {
namespace {

using test::Traced;
using walk::Step;
using walk::StepKind;

// Encodes one step. Returns false if the fast path does not support it.
bool encode(FastEncoder& encoder, PendingBits& pending, const Step& step) {
  switch (step.kind) {
    case StepKind::COND:
      pending.add(step.taken);
      return true;
    case StepKind::JUMP:
      return true;
    case StepKind::CALL:
      if (step.to != step.next_ip) encoder.call(step.next_ip);
      return true;
    case StepKind::CALL_INDIRECT:
      encoder.call(step.next_ip);
      encoder.tip(pending, step.to);
      return true;
    case StepKind::JUMP_INDIRECT:
      encoder.tip(pending, step.to);
      return true;
    case StepKind::RETURN:
      encoder.ret(pending, step.to);
      return true;
    default:
      return false;
  }
}

// Time and PSBs come at the beginning of a group of steps.
struct Group {
  std::vector<Step> steps;
};

std::vector<Group> groups_of(const walk::Walk& walk, std::mt19937_64& random) {
  std::vector<Group> out;
  for (const Step& step : walk.steps) {
    if (out.empty() || random() % 12 == 0) out.emplace_back();
    out.back().steps.push_back(step);
    // Some addresses are not canonical, or near each other only in some bits.
    if (random() % 40 == 0) out.back().steps.back().to = random() >> (random() % 64);
  }
  return out;
}

void begin_group(PacketGenerator& unit, const Step& step) {
  unit.set_time(step.tsc, 0);
  if (!unit.psb_due()) return;
  unit.hold_psb(false);
  unit.at(step.from);
  unit.hold_psb(true);
}

void by_calls(PacketGenerator& unit, const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    begin_group(unit, group.steps.front());
    for (Step step : group.steps) {
      step.tsc = 0;
      step.ratio = 30;
      walk::tell(unit, step);
    }
  }
}

void by_fast_path(PacketGenerator& unit, const std::vector<Group>& groups) {
  FastEncoder encoder;
  PendingBits pending;
  bool open = false;
  unsigned left = 0;  // steps before the next make_room()
  const auto close = [&] {
    encoder.set_pending(pending);
    if (open) unit.end_fast_path(encoder);
    open = false;
  };
  for (const Group& group : groups) {
    const std::uint64_t tsc = group.steps.front().tsc;
    if (open && encoder.quiet_until(tsc)) {
      encoder.set_time(tsc);
    } else {
      close();
      begin_group(unit, group.steps.front());
    }
    for (Step step : group.steps) {
      if (open && left == 0 && !encoder.has_room()) close();
      if (!open) {
        open = unit.begin_fast_path(encoder);
        pending = encoder.pending();
      }
      if (open && left == 0) {
        encoder.make_room(pending);
        left = FastEncoder::kSteps;
      }
      if (open && encode(encoder, pending, step)) {
        --left;
        continue;
      }
      close();
      left = 0;
      step.tsc = 0;
      step.ratio = 30;
      walk::tell(unit, step);
    }
  }
  close();
}

TEST(FastEncoder, WritesTheBytesOfTheCalls) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    walk::WalkOptions options;
    options.seed = seed;
    options.steps = 3000;
    options.odd_return_per_mille = static_cast<std::uint32_t>(seed % 5 * 50);
    const auto groups = groups_of(walk::random_walk(options), random);
    GeneratorConfig config;
    config.return_compression = seed % 3 != 0;
    config.tip_ret = static_cast<TipRet>(seed / 3 % 3);
    config.mtc = seed % 2 != 0;
    config.mtc_period = static_cast<std::uint8_t>(random() % 8);
    config.tsc = seed % 7 != 0;
    config.psb_bytes = 256U << (random() % 5);
    Traced calls(config);
    Traced encoder(config);
    for (Traced* each : {&calls, &encoder}) {
      each->unit.hold_psb(true);
      each->unit.set_time(groups[0].steps[0].tsc - 10, 0);
      each->unit.set_mode(true, false, true);
      each->unit.enable(0x401000);
    }
    by_calls(calls.unit, groups);
    by_fast_path(encoder.unit, groups);
    calls.unit.flush();
    encoder.unit.flush();
    ASSERT_TRUE(calls.bytes == encoder.bytes);
    EXPECT_GT(encoder.bytes.size(), 500U);
  }
}

TEST(FastEncoder, RejectsUnsupportedConfigurations) {
  const auto lent = [](GeneratorConfig config, bool enabled, bool held) {
    Traced traced(config);
    traced.unit.hold_psb(held);
    if (enabled) traced.unit.enable(0x401000);
    FastEncoder encoder;
    const bool yes = traced.unit.begin_fast_path(encoder);
    if (yes) traced.unit.end_fast_path(encoder);
    return yes;
  };
  GeneratorConfig long_tnt;
  long_tnt.use_tnt_64 = true;
  GeneratorConfig deferred;
  deferred.deferred_tips = true;
  GeneratorConfig no_tnt;
  no_tnt.tnt = false;
  EXPECT_TRUE(lent({}, true, true));
  EXPECT_FALSE(lent({}, false, true));
  EXPECT_FALSE(lent({}, true, false));
  for (const GeneratorConfig& config : {long_tnt, deferred, no_tnt}) EXPECT_FALSE(lent(config, true, true));
}

}  // namespace
}  // namespace ptkit::trace_unit::generator
