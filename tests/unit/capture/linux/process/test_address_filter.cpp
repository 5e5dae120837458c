// Address filters: the decoded rows are what a trace unit with these ranges traces.
#include <algorithm>
#include <csignal>
#include <map>

#include "capture/common/recorded_filter.h"
#include "capture/linux/emulator/filter_ranges.h"
#include "capture/linux/process/address_filter.h"
#include "unit/support/traces/filtered.h"

namespace ptkit::capture::test {
namespace {

using Kind = FilterRequest::Kind;

// The bundle's ranges for a process with the `requested` ranges and another process with the ranges `more`.
std::vector<trace::AddressRange> ranges_of(const std::vector<RequestedRange>& requested,
                                           const std::vector<RequestedRange>& more = {}) {
  FilterRanges found(true);
  for (const std::vector<RequestedRange>* of : {&requested, &more}) {
    ProcessRanges process;
    for (const RequestedRange& one : *of) static_cast<void>(process.add(one.kind, one.first, one.last));
    found.add(process);
  }
  return found.common();
}

void expect_same(const Decoded& found, const Decoded& expected) {
  EXPECT_TRUE(found.errors.empty());
  EXPECT_TRUE(found.ips == expected.ips) << found.ips.size() << " of " << expected.ips.size();
  EXPECT_EQ(found.events.size(), expected.events.size());
  ASSERT_EQ(found.branches.size(), expected.branches.size());
  for (std::size_t i = 0; i < found.branches.size(); ++i) {
    EXPECT_EQ(found.branches[i].ip, expected.branches[i].ip);
    EXPECT_EQ(found.branches[i].to, expected.branches[i].to);
  }
}

TEST(AddressFilter, DecodesWhatATraceUnitTraces) {
  std::mt19937_64 random(11);
  std::size_t seen_in_all = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Emulation run;
    Emulator(run, {.seed = seed, .events = 8000}).run();
    const std::vector<RequestedRange> requested = random_ranges(run, random);
    const auto filter = filter_of(requested);
    const GeneratorConfig config = config_of(true, seed % 3 != 0, 3 + seed % 4);
    const Encoded out = encode(run, config, {seed % 2 != 0 ? 14U : 0U}, {}, filter.get());
    const Encoded slow = encode(run, config, {seed % 2 != 0 ? 14U : 0U},
                                {ExecutionLog("/dev/null"), ExecutionLog("/dev/null"), {}}, filter.get());
    EXPECT_TRUE(out.bytes == slow.bytes);
    const Decoded seen = decode(bundle_for(run.program.regions, config, out.bytes));
    const Expected expected = filtered(run, requested);
    EXPECT_TRUE(seen.errors.empty());
    EXPECT_EQ(out.unexplained, 0U);
    EXPECT_EQ(out.instructions, expected.ips.size());
    EXPECT_EQ(out.branches, expected.branches.size());
    EXPECT_TRUE(seen.ips == expected.ips) << seen.ips.size() << " of " << expected.ips.size();
    ASSERT_EQ(seen.branches.size(), expected.branches.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < expected.branches.size(); ++i) {
      ASSERT_EQ(seen.branches[i].ip, expected.branches[i].ip);
      const time::TimeRange& range = seen.branches[i].time;
      wrong += expected.branches[i].tsc < range.tsc ? 1U : 0U;
      wrong += range.error != 0xffff'ffff && expected.branches[i].tsc > range.tsc + range.error ? 1U : 0U;
    }
    EXPECT_LE(wrong, expected.branches.size() / 1000 + 1);
    seen_in_all += seen.ips.size();
  }
  EXPECT_GT(seen_in_all, 100'000U);
}

// Packets show where branches leave the filter ranges: a decoder with the ranges decodes the same rows.
TEST(AddressFilter, DecodesTheSameWithoutRanges) {
  std::mt19937_64 random(12);
  std::size_t with_ranges = 0;
  std::size_t with_stops = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Emulation run;
    Emulator(run, {.seed = seed, .events = 4000}).run();
    const std::vector<RequestedRange> requested = random_ranges(run, random);
    const std::vector<RequestedRange> other{
        function_range(run, random() % run.program.functions.size(), Kind::FILTER)};
    const auto filter = filter_of(requested);
    const GeneratorConfig config = config_of(true, false, 5);
    const Encoded out = encode(run, config, {14U}, {}, filter.get());
    const auto bundle = bundle_for(run.program.regions, config, out.bytes);
    const Decoded without = decode(bundle);
    if (ranges_of(requested).empty()) continue;
    for (const auto& ranges : {ranges_of(requested), ranges_of(requested, other)}) {
      if (ranges.empty()) continue;  // more ranges than a trace unit has
      ++with_ranges;
      with_stops += ranges.back().kind == trace::RangeKind::TRACE_STOP ? 1U : 0U;
      set_ranges(ranges, bundle->configuration);
      expect_same(decode(bundle), without);
      bundle->configuration.ranges = {};
    }
  }
  EXPECT_GT(with_ranges, 20U);
  EXPECT_GT(with_stops, 2U);
}

TEST(AddressFilter, CountsEveryExecutionOfAWatchedAddress) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Emulation run;
    Emulator(run, {.seed = seed, .events = 8000}).run();
    std::map<std::uint64_t, std::uint64_t> executed;
    for (const std::uint64_t ip : run.ips) ++executed[ip];
    AddressFilter filter;
    std::vector<std::uint64_t> addresses;
    for (const auto& [ip, count] : executed) {
      if (ip % 3 == 0) addresses.push_back(ip);
    }
    for (std::uint32_t id = 0; id < addresses.size(); ++id) filter.watch(addresses[id], id);
    std::vector<std::uint64_t> counts(addresses.size());
    std::uint64_t last = 0;
    const Encoded out =
        encode(run, config_of(true, true, 8), {14}, {}, &filter, [&](std::uint32_t id, std::uint64_t tsc) {
          ++counts[id];
          EXPECT_GE(tsc, last);
          last = tsc;
        });
    for (std::size_t id = 0; id < addresses.size(); ++id) ASSERT_EQ(counts[id], executed[addresses[id]]);
    EXPECT_EQ(
        out.bytes,
        encode(run, config_of(true, true, 8), {14}).bytes);  // watched addresses do not change the trace
  }
}

TEST(AddressFilter, AppliesRangesAddedDuringExecution) {
  // 0 nop; 1 jnz 0; 3 nop; 4 nop; 5 jnz 3
  ManualBlocks hand({0x90, 0x75, 0xfd, 0x90, 0x90, 0x75, 0xfc});
  const std::vector<FilterRequest> requests(1);
  AddressFilter filter(requests);
  BlockEncoder& encoder = hand.encoder(&filter);
  const std::uint32_t first = hand.block(0, 3);
  const std::uint32_t second = hand.block(3, 7);
  const std::vector<std::uint32_t> line(6, second);
  encoder.block(first, 1000);
  encoder.blocks(line, 1010, 1100);
  EXPECT_EQ(encoder.instructions(), 0U);
  filter.add(Kind::FILTER, kBase + 3, kBase + 6);
  encoder.blocks(line, 1100, 1200);
  encoder.blocks(line, 1200, 1300);
  encoder.end(1300);
  EXPECT_EQ(encoder.unexplained(), 0U);
  const Decoded seen = hand.decoded();
  EXPECT_TRUE(seen.errors.empty());
  // The range applies from the first block of the next line on; the end of the last block is not known.
  EXPECT_EQ(encoder.instructions(), 12 * 3 - 1U);
  EXPECT_EQ(seen.ips.size(), 12 * 3 - 1U);
  EXPECT_EQ(std::count(seen.ips.begin(), seen.ips.end(), kBase + 5), 11);
}

TEST(AddressFilter, FallThroughLeavesNoRange) {
  // 0 jnz 4; 2 nop; 3 nop; 4 nop; 5 jnz 0
  ManualBlocks hand({0x75, 0x02, 0x90, 0x90, 0x90, 0x75, 0xf9});
  const std::vector<FilterRequest> requests(1);
  AddressFilter filter(requests);
  filter.add(Kind::FILTER, kBase, kBase + 2);
  BlockEncoder& encoder = hand.encoder(&filter);
  const std::uint32_t jump = hand.block(0, 2);
  const std::uint32_t inside = hand.block(2, 4);
  const std::uint32_t outside = hand.block(4, 7);
  for (const std::uint32_t number : {jump, inside, outside, jump, outside, jump, inside})
    encoder.block(number, 1000);
  encoder.end(1100);
  const Decoded seen = hand.decoded();
  EXPECT_TRUE(seen.errors.empty());
  EXPECT_EQ(seen.ips, at({0, 2, 3, 4, 5, 0, 0, 2, 3}));
}

TEST(AddressFilter, TraceStopIsPermanent) {
  // 0 jnz 4; 2 nop; 3 nop; 4 nop; 5 jnz 0
  ManualBlocks hand({0x75, 0x02, 0x90, 0x90, 0x90, 0x75, 0xf9});
  AddressFilter filter;
  filter.add(Kind::TRACESTOP, kBase + 4, kBase + 6);
  BlockEncoder& encoder = hand.encoder(&filter);
  const std::uint32_t jump = hand.block(0, 2);
  const std::uint32_t outside = hand.block(4, 7);
  for (const std::uint32_t number : {jump, outside, jump, outside, jump}) encoder.block(number, 1000);
  encoder.end(1100);
  const Decoded seen = hand.decoded();
  EXPECT_TRUE(seen.errors.empty());
  EXPECT_EQ(seen.ips, at({0}));
  EXPECT_TRUE(std::any_of(seen.events.begin(), seen.events.end(),
                          [](const flow::Event& row) { return row.kind == flow::EventKind::STOP; }));
}

}  // namespace
}  // namespace ptkit::capture::test
