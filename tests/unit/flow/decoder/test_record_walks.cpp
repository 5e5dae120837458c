// Random programs: from the records of their branches, the decoder emits exactly the executed path.
#include <gtest/gtest.h>

#include <algorithm>

#include "flow/decoder/record_decoder.h"
#include "trace/branch_records.h"
#include "unit/support/traces/roundtrip.h"

namespace ptkit::flow::roundtrip {
namespace {

using trace::BranchRecord;
using walk::Step;
using walk::StepKind;
using walk::Walk;

constexpr std::uint64_t kEntry = 0xffffffff81000000;  // of SYSCALL; sysretq
constexpr std::uint64_t kHandler = kEntry + 0x100;    // of interrupts; iretq

// The programs have modules everywhere; these shall be user code.
std::uint64_t user(std::uint64_t ip) { return ip & 0x7fffffffffff; }

struct Levels {
  const char* name;
  bool calls;    // records that lead into the kernel
  bool returns;  // and out of it
  bool kernel_code;
};

void PrintTo(const Levels& levels, std::ostream* out) { *out << levels.name; }

// What a processor writes of a walk.
std::vector<BranchRecord> records_of(const Walk& walk, const Levels& levels) {
  std::vector<BranchRecord> out;
  const auto enter = [&](std::uint64_t from, std::uint64_t to) {
    if (levels.calls) out.push_back({user(from), to, 0, 0, 0});
  };
  const auto leave = [&](std::uint64_t from, std::uint64_t to) {
    if (levels.returns) out.push_back({from, user(to), 0, 0, 0});
  };
  leave(kHandler, walk.entry);
  std::uint64_t left_at = kHandler;
  for (const Step& step : walk.steps) {
    switch (step.kind) {
      case StepKind::PTWRITE:
        break;
      case StepKind::SYSCALL:
        enter(step.from, left_at = kEntry);
        break;
      case StepKind::ASYNC_OUT:
        enter(step.from, left_at = kHandler);
        break;
      case StepKind::RESUME:
        leave(left_at, step.to);
        break;
      case StepKind::ASYNC:  // and a handler in user code
        enter(step.from, kHandler);
        leave(kHandler, step.to);
        break;
      default:
        if (step.kind != StepKind::COND || step.taken)
          out.push_back({user(step.from), user(step.to), 0, 0, 0});
        break;
    }
  }
  enter(walk.end_ip, kHandler);
  leave(kHandler, walk.end_ip);
  return out;
}

std::shared_ptr<trace::TraceBundle> bundle_of(const Walk& walk, const Levels& levels,
                                              std::vector<BranchRecord> records) {
  std::vector<walk::CodeRegion> regions = walk.program.regions;
  for (walk::CodeRegion& region : regions) region.address = user(region.address);
  if (levels.kernel_code) {
    regions.push_back({kEntry, {0x48, 0x0f, 0x07}});
    regions.push_back({kHandler, {0x48, 0xcf}});
  }
  auto bundle = bundle_for(regions, {}, {});
  bundle->streams[0].kind = trace::StreamKind::BRANCH_RECORDS;
  bundle->streams[0].data = trace::to_buffer(std::move(records));
  return bundle;
}

std::unique_ptr<RowSource> record_engine(const trace::TraceBundle& bundle, const code::image::Image& image,
                                         FlowSink& sink, time::TimeTrack* track) {
  return std::make_unique<RecordDecoder>(bundle.streams[0], bundle.configuration, image, sink, track);
}

std::vector<std::uint64_t> user_part(const std::vector<std::uint64_t>& ips) {
  std::vector<std::uint64_t> out;
  std::copy_if(ips.begin(), ips.end(), std::back_inserter(out),
               [](std::uint64_t ip) { return ip >> 63 == 0; });
  return out;
}

// An interrupt that comes right before a far transfer: its record looks as if that had run.
bool looks_like_transfer(const Walk& walk, const Step& step, const Levels& levels) {
  if (!levels.calls || (step.kind != StepKind::ASYNC && step.kind != StepKind::ASYNC_OUT)) return false;
  const walk::Op op = walk.program.insns.at(step.from).op;
  return op == walk::Op::SYSCALL || op == walk::Op::IRET;
}

std::vector<std::uint64_t> true_ips(const Walk& walk, const Levels& levels) {
  std::vector<std::uint64_t> out;
  std::size_t next = 0;
  for (const Step& step : walk.steps) {
    while (next < step.insns) out.push_back(user(walk.ips[next++]));
    if (looks_like_transfer(walk, step, levels)) out.push_back(user(step.from));
  }
  while (next < walk.ips.size()) out.push_back(user(walk.ips[next++]));
  return out;
}

class RecordWalks : public testing::TestWithParam<Levels> {};
class RecordBranches : public testing::TestWithParam<Levels> {};

TEST_P(RecordWalks, EqualExecutedPath) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SCOPED_TRACE(seed);
    walk::WalkOptions options;
    options.seed = seed;
    if (!GetParam().calls) options.async_per_mille = 0;  // nothing would show where a handler came in
    const Walk walk = walk::random_walk(options);
    const Collector rows = decode(bundle_of(walk, GetParam(), records_of(walk, GetParam())), record_engine);
    std::vector<std::uint64_t> expected = true_ips(walk, GetParam());
    std::vector<std::uint64_t> given = user_part(rows.ips);
    if (!GetParam().returns) {
      // The start and the end are unknown.
      const auto begin = std::search(expected.begin(), expected.end(), given.begin(), given.begin() + 20);
      expected.erase(expected.begin(), begin);
      ASSERT_LE(given.size(), expected.size());
      EXPECT_GT(given.size() + 100, expected.size());
      expected.resize(given.size());
    }
    EXPECT_TRUE(given == expected);
    const bool misses_code = GetParam().calls && !GetParam().kernel_code;
    EXPECT_EQ(rows.errors.empty(), !misses_code);
    EXPECT_EQ(rows.gaps.size(), rows.errors.size());
  }
}

// Conditionals that fall through, and all the others, with their kinds.
TEST_P(RecordBranches, AreComplete) {
  walk::WalkOptions options;
  options.seed = 42;
  if (!GetParam().calls) options.async_per_mille = 0;
  const Walk walk = walk::random_walk(options);
  const Collector rows = decode(bundle_of(walk, GetParam(), records_of(walk, GetParam())), record_engine);
  std::vector<Branch> given;
  std::copy_if(rows.branches.begin(), rows.branches.end(), std::back_inserter(given),
               [](const Branch& branch) { return branch.from_ip >> 63 == 0; });
  std::size_t next = 0;
  for (const Step& step : walk.steps) {
    if (step.kind == StepKind::PTWRITE || step.kind == StepKind::RESUME) continue;
    ASSERT_LT(next, given.size());
    const Branch& branch = given[next++];
    SCOPED_TRACE(next);
    ASSERT_EQ(branch.from_ip, user(step.from));
    const bool out =
        step.kind == StepKind::SYSCALL || step.kind == StepKind::ASYNC_OUT || step.kind == StepKind::ASYNC;
    ASSERT_EQ((branch.flags & TO_KNOWN) != 0, !out || GetParam().calls);
    if (!out) {
      ASSERT_EQ(branch.to_ip, user(step.to));
    }
    ASSERT_EQ((branch.flags & TAKEN) != 0, step.kind != StepKind::COND || step.taken);
    ASSERT_EQ(branch.kind == BranchKind::COND, step.kind == StepKind::COND);
    ASSERT_EQ(branch.kind == BranchKind::RETURN, step.kind == StepKind::RETURN);
    if (looks_like_transfer(walk, step, GetParam())) continue;
    ASSERT_EQ(branch.kind == BranchKind::SYSCALL, step.kind == StepKind::SYSCALL);
    ASSERT_EQ(branch.kind == BranchKind::ASYNC,
              step.kind == StepKind::ASYNC || step.kind == StepKind::ASYNC_OUT);
  }
  EXPECT_EQ(next + 1, given.size());  // and where it left
}

constexpr Levels kBoth{"both", true, true, true};
constexpr Levels kNoCode{"no_code", true, true, false};
constexpr Levels kUser{"user", false, true, false};
constexpr Levels kUserWithCode{"user_with_code", false, true, true};
constexpr Levels kHiddenKernel{"hidden_kernel", false, false, false};

INSTANTIATE_TEST_SUITE_P(All, RecordWalks,
                         testing::Values(kBoth, kNoCode, kUser, kUserWithCode, kHiddenKernel),
                         testing::PrintToStringParamName());
// Without a way back, interrupts leave no trace.
INSTANTIATE_TEST_SUITE_P(All, RecordBranches, testing::Values(kBoth, kNoCode, kUser, kUserWithCode),
                         testing::PrintToStringParamName());

// Stacks of the last 32 branches, at random positions: each gives a part of the path.
TEST(RecordStacks, EqualPartsOfExecutedPath) {
  const Walk walk = walk::random_walk({.seed = 7});
  const std::vector<BranchRecord> all = records_of(walk, kBoth);
  std::mt19937 random(99);
  std::vector<BranchRecord> stacks;
  constexpr std::size_t kDepth = 32;
  std::size_t count = 0;
  for (std::size_t at = kDepth; at < all.size(); at += kDepth + random() % 200, ++count) {
    stacks.insert(stacks.end(), all.begin() + static_cast<std::ptrdiff_t>(at - kDepth),
                  all.begin() + static_cast<std::ptrdiff_t>(at));
    stacks[stacks.size() - kDepth].flags |= trace::RECORD_FIRST;
  }
  const Collector whole = decode(bundle_of(walk, kBoth, all), record_engine);
  const Collector rows = decode(bundle_of(walk, kBoth, stacks), record_engine);
  EXPECT_TRUE(rows.errors.empty());
  EXPECT_EQ(rows.gaps.size(), count);
  // Part by part, in the order of the path.
  const auto same = [](const Branch& a, const Branch& b) {
    return a.from_ip == b.from_ip && a.to_ip == b.to_ip && a.kind == b.kind && a.flags == b.flags;
  };
  auto at = whole.branches.begin();
  std::size_t begin = 0;
  for (std::size_t stack = 0; stack < count; ++stack) {
    std::size_t end = begin;
    const std::uint64_t limit = (stack + 1) * kDepth;
    while (end < rows.branches.size() && rows.branches[end].span.offset < limit) ++end;
    ASSERT_GE(end - begin, kDepth);
    at = std::search(at, whole.branches.end(), rows.branches.begin() + static_cast<std::ptrdiff_t>(begin),
                     rows.branches.begin() + static_cast<std::ptrdiff_t>(end), same);
    ASSERT_NE(at, whole.branches.end()) << "stack " << stack;
    begin = end;
  }
  EXPECT_EQ(begin, rows.branches.size());
}

}  // namespace
}  // namespace ptkit::flow::roundtrip
