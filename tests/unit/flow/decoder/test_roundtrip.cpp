// Random programs, traced by the software trace unit and decoded: the decoder emits exactly the executed
// path.
#include <gtest/gtest.h>

#include <optional>

#include "unit/support/traces/roundtrip.h"

namespace ptkit::flow::roundtrip {
namespace {

using trace_unit::generator::GeneratorConfig;
using walk::Step;
using walk::StepKind;
using walk::Walk;

std::optional<BranchKind> branch_kind(StepKind kind) {
  switch (kind) {
    case StepKind::COND:
      return BranchKind::COND;
    case StepKind::JUMP:
      return BranchKind::JUMP;
    case StepKind::CALL:
      return BranchKind::CALL;
    case StepKind::CALL_INDIRECT:
      return BranchKind::CALL_INDIRECT;
    case StepKind::JUMP_INDIRECT:
      return BranchKind::JUMP_INDIRECT;
    case StepKind::RETURN:
      return BranchKind::RETURN;
    case StepKind::IRET:
      return BranchKind::IRET;
    case StepKind::SYSCALL:
      return BranchKind::SYSCALL;
    case StepKind::ASYNC:
    case StepKind::ASYNC_OUT:
      return BranchKind::ASYNC;
    default:
      return std::nullopt;
  }
}

std::optional<EventKind> event_kind(StepKind kind) {
  switch (kind) {
    case StepKind::ASYNC:
      return EventKind::ASYNC_BRANCH;
    case StepKind::ASYNC_OUT:
      return EventKind::ASYNC_DISABLED;
    case StepKind::SYSCALL:
      return EventKind::DISABLED;
    case StepKind::RESUME:
      return EventKind::ENABLED;
    case StepKind::PTWRITE:
      return EventKind::PTWRITE;
    case StepKind::OVERFLOW:
      return EventKind::OVERFLOW;
    default:
      return std::nullopt;
  }
}

bool is_direct(BranchKind kind) { return kind == BranchKind::JUMP || kind == BranchKind::CALL; }

struct Expected {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  BranchKind kind = BranchKind::COND;
  bool taken = true;
  bool to_known = true;
};

// The branches of a walk. Direct ones are left out of walks with losses: how far they were followed before a
// loss cannot be known.
std::vector<Expected> expected_branches(const Walk& walk, bool direct) {
  std::vector<Expected> out;
  for (const Step& step : walk.steps) {
    const std::optional<BranchKind> kind = branch_kind(step.kind);
    if (!kind || (!direct && is_direct(*kind))) continue;
    const bool out_of_trace = step.kind == StepKind::SYSCALL || step.kind == StepKind::ASYNC_OUT;
    out.push_back({step.from, out_of_trace ? 0 : step.to, *kind, *kind != BranchKind::COND || step.taken,
                   !out_of_trace});
  }
  out.push_back({walk.end_ip, 0, BranchKind::ASYNC, true, false});
  return out;
}

void expect_branches(const Walk& walk, const Collector& rows, bool direct) {
  const std::vector<Expected> expected = expected_branches(walk, direct);
  std::size_t next = 0;
  for (const Branch& branch : rows.branches) {
    if (!direct && is_direct(branch.kind)) continue;
    ASSERT_LT(next, expected.size());
    const Expected& truth = expected[next];
    SCOPED_TRACE(testing::Message() << "branch " << next << " at offset " << branch.span.offset);
    ASSERT_EQ(branch.kind, truth.kind);
    ASSERT_EQ(branch.from_ip, truth.from);
    ASSERT_EQ((branch.flags & TO_KNOWN) != 0, truth.to_known);
    if (truth.to_known) {
      ASSERT_EQ(branch.to_ip, truth.to);
    }
    if (truth.kind == BranchKind::COND) {
      ASSERT_EQ((branch.flags & TAKEN) != 0, truth.taken);
    }
    ++next;
  }
  EXPECT_EQ(next, expected.size());
}

// Events other than state in PSB+ and power.
void expect_events(const Walk& walk, const Collector& rows) {
  std::vector<Event> seen;
  for (const Event& event : rows.events) {
    const bool state = (event.flags & EV_STATUS) != 0 || event.kind == EventKind::CBR ||
                       event.kind == EventKind::EXEC_MODE || event.kind == EventKind::IFLAG;
    if (!state) seen.push_back(event);
  }
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.front().kind, EventKind::ENABLED);
  EXPECT_EQ(seen.front().ip, walk.entry);
  std::size_t next = 1;
  for (const Step& step : walk.steps) {
    const std::optional<EventKind> kind = event_kind(step.kind);
    if (!kind) continue;
    ASSERT_LT(next, seen.size());
    const Event& event = seen[next++];
    SCOPED_TRACE(testing::Message() << "event " << next - 1 << " at offset " << event.span.offset);
    ASSERT_EQ(event.kind, *kind);
    if (step.kind == StepKind::PTWRITE) {
      ASSERT_EQ(event.payload, step.value);
    }
    if (step.kind == StepKind::ASYNC || step.kind == StepKind::ASYNC_OUT) {
      ASSERT_EQ(event.payload, step.from);
    }
    if (step.kind == StepKind::RESUME || step.kind == StepKind::ASYNC || step.kind == StepKind::OVERFLOW) {
      ASSERT_EQ(event.ip, step.to);
    }
  }
  ASSERT_EQ(next + 1, seen.size());
  EXPECT_EQ(seen.back().kind, EventKind::ASYNC_DISABLED);
  EXPECT_EQ(seen.back().payload, walk.end_ip);
}

// Without losses the instructions equal the executed ones. Before a loss the decoder may stop earlier (no
// packet has the last position), or later if no branch came before.
void expect_instructions(const Walk& walk, const Collector& rows) {
  std::vector<std::uint64_t> ends;
  for (const Step& step : walk.steps) {
    if (step.kind == StepKind::OVERFLOW) ends.push_back(step.insns);
  }
  ends.push_back(walk.ips.size());
  ASSERT_EQ(rows.losses.size() + 1, ends.size());
  std::uint64_t true_begin = 0;
  std::uint64_t seen_begin = 0;
  for (std::size_t part = 0; part < ends.size(); ++part) {
    const bool last = part + 1 == ends.size();
    const std::uint64_t seen_end = last ? rows.ips.size() : rows.losses[part];
    const std::uint64_t common = std::min(seen_end - seen_begin, ends[part] - true_begin);
    for (std::uint64_t i = 0; i < common; ++i) {
      ASSERT_EQ(rows.ips[seen_begin + i], walk.ips[true_begin + i])
          << "part " << part << ", instruction " << i;
    }
    if (last) {
      EXPECT_EQ(seen_end - seen_begin, ends[part] - true_begin);
    }
    true_begin = ends[part];
    seen_begin = seen_end;
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
  plain.psb_bytes = 2048;
  plain.tsc_ctc_numerator = 168;
  plain.tsc_ctc_denominator = 2;
  GeneratorConfig uncompressed = plain;
  uncompressed.return_compression = false;
  GeneratorConfig tnt_64 = plain;
  tnt_64.use_tnt_64 = true;
  GeneratorConfig deferred = plain;
  deferred.deferred_tips = true;
  GeneratorConfig timing = plain;
  timing.mtc = timing.cyc = timing.fup_on_ptw = true;
  GeneratorConfig everything = timing;
  everything.use_tnt_64 = everything.deferred_tips = true;
  everything.cyc_threshold = 3;
  GeneratorConfig often_psb = everything;
  often_psb.psb_bytes = 128;
  return {{"plain", plain},
          {"uncompressed", uncompressed},
          {"tnt_64", tnt_64},
          {"deferred_tips", deferred},
          {"timing", timing},
          {"everything", everything},
          {"often_psb", often_psb},
          {"overflow", plain, 5},
          {"everything_overflow", often_psb, 10}};
}

class Roundtrip : public testing::TestWithParam<Variant> {};

Walk walk_of(const Variant& variant, std::uint64_t seed) {
  walk::WalkOptions options;
  options.seed = seed;
  options.overflow_per_mille = variant.overflow_per_mille;
  options.odd_return_per_mille = variant.odd_return_per_mille;
  return walk::random_walk(options);
}

TEST_P(Roundtrip, EqualsExecutedPath) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    const Walk walk = walk_of(GetParam(), seed);
    const Collector rows = decode(bundle_of(walk, GetParam().config), own_engine);
    for (const FlowError& error : rows.errors) {
      EXPECT_EQ(error.code, base::Status::OVERFLOW_LOST) << "at " << error.span.offset;
    }
    expect_branches(walk, rows, GetParam().overflow_per_mille == 0);
    expect_events(walk, rows);
    expect_instructions(walk, rows);
  }
}

INSTANTIATE_TEST_SUITE_P(Walk, Roundtrip, testing::ValuesIn(variants()),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace ptkit::flow::roundtrip
