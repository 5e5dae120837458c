// The short way of a trace unit writes the bytes that its calls write.
#include <gtest/gtest.h>

#include <random>

#include "support.h"
#include "walk.h"

namespace ptkit::softpt {
namespace {

using test::Traced;
using walk::Step;
using walk::StepKind;

// One step, where the short way has it.
bool tell(Lane& lane, PendingBits& pending, const Step& step) {
  switch (step.kind) {
    case StepKind::COND:
      pending.add(step.taken ? 1 : 0, 1);
      return true;
    case StepKind::JUMP:
      return true;
    case StepKind::CALL:
      if (step.to != step.next_ip) lane.call(step.next_ip);
      return true;
    case StepKind::CALL_INDIRECT:
      lane.call(step.next_ip);
      lane.tip(pending, step.to);
      return true;
    case StepKind::JUMP_INDIRECT:
      lane.tip(pending, step.to);
      return true;
    case StepKind::RETURN:
      lane.ret(pending, step.to);
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

void begin_group(PtUnit& unit, const Step& step) {
  unit.set_time(step.tsc, 0);
  if (!unit.psb_due()) return;
  unit.hold_psb(false);
  unit.at(step.from);
  unit.hold_psb(true);
}

void by_calls(PtUnit& unit, const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    begin_group(unit, group.steps.front());
    for (Step step : group.steps) {
      step.tsc = 0;
      step.ratio = 30;
      walk::tell(unit, step);
    }
  }
}

void by_lane(PtUnit& unit, const std::vector<Group>& groups) {
  Lane lane;
  PendingBits pending;
  bool open = false;
  unsigned left = 0;  // steps before room has to be made
  const auto close = [&] {
    lane.set_pending(pending);
    if (open) unit.take_back(lane);
    open = false;
  };
  for (const Group& group : groups) {
    const std::uint64_t tsc = group.steps.front().tsc;
    if (open && lane.quiet_until(tsc)) {
      lane.set_time(tsc);
    } else {
      close();
      begin_group(unit, group.steps.front());
    }
    for (Step step : group.steps) {
      if (open && left == 0 && !lane.has_room()) close();
      if (!open) {
        open = unit.lend(lane);
        pending = lane.pending();
      }
      if (open && left == 0) {
        lane.make_room(pending);
        left = Lane::kSteps;
      }
      if (open && tell(lane, pending, step)) {
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

TEST(Lane, WritesWhatTheCallsWrite) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    walk::WalkOptions options;
    options.seed = seed;
    options.steps = 3000;
    options.odd_return_per_mille = static_cast<std::uint32_t>(seed % 5 * 50);
    const auto groups = groups_of(walk::random_walk(options), random);
    UnitConfig config;
    config.return_compression = seed % 3 != 0;
    config.tip_ret = static_cast<TipRet>(seed / 3 % 3);
    config.mtc = seed % 2 != 0;
    config.mtc_period = static_cast<std::uint8_t>(random() % 8);
    config.tsc = seed % 7 != 0;
    config.psb_bytes = 256U << (random() % 5);
    Traced calls(config);
    Traced lane(config);
    for (Traced* each : {&calls, &lane}) {
      each->unit.hold_psb(true);
      each->unit.set_time(groups[0].steps[0].tsc - 10, 0);
      each->unit.set_mode(true, false, true);
      each->unit.enable(0x401000);
    }
    by_calls(calls.unit, groups);
    by_lane(lane.unit, groups);
    calls.unit.flush();
    lane.unit.flush();
    ASSERT_TRUE(calls.bytes == lane.bytes);
    EXPECT_GT(lane.bytes.size(), 500U);
  }
}

TEST(Lane, IsNotLentWhereItCouldNotTellAll) {
  const auto lent = [](UnitConfig config, bool enabled, bool held) {
    Traced traced(config);
    traced.unit.hold_psb(held);
    if (enabled) traced.unit.enable(0x401000);
    Lane lane;
    const bool yes = traced.unit.lend(lane);
    if (yes) traced.unit.take_back(lane);
    return yes;
  };
  UnitConfig long_tnt;
  long_tnt.use_tnt_64 = true;
  UnitConfig deferred;
  deferred.deferred_tips = true;
  UnitConfig no_tnt;
  no_tnt.tnt = false;
  EXPECT_TRUE(lent({}, true, true));
  EXPECT_FALSE(lent({}, false, true));
  EXPECT_FALSE(lent({}, true, false));
  for (const UnitConfig& config : {long_tnt, deferred, no_tnt}) EXPECT_FALSE(lent(config, true, true));
}

}  // namespace
}  // namespace ptkit::softpt
