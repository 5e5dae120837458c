// Branches in perf.data: branch stacks, Branch Trace Store in the AUX area and in samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "flow/decoder/record_decoder.h"
#include "formats/registry.h"
#include "trace/branch_record.h"
#include "unit/support/makers/perf_sample.h"
#include "unit/support/seconds.h"
#include "unit/support/traces/perf_reading.h"

namespace ptkit::formats {
namespace {

using test::Attribute;
using test::Bytes;
using test::kEach;
using test::SampleId;
using test::time_conversion;
using trace::BranchRecord;

constexpr std::uint64_t bit(unsigned number) { return std::uint64_t{1} << number; }
constexpr std::uint64_t kWho = bit(1) | bit(2) | bit(7) | bit(16);
constexpr std::uint64_t kAny = 1U << 3U;

class PerfBranches : public test::PerfReading {};

// Instructions.
class Ips final : public flow::FlowSink {
 public:
  void on_block(const flow::Block& block) override {
    std::uint64_t ip = block.ip;
    for (const flow::BlockInsn& insn : block.insns) {
      all.push_back(ip);
      ip += insn.size;
    }
  }
  std::vector<std::uint64_t> all;
};

std::vector<BranchRecord> records(const trace::Stream& stream) {
  EXPECT_EQ(stream.kind, trace::StreamKind::BRANCH_RECORDS);
  const base::Bytes bytes = stream.data.bytes();
  std::vector<BranchRecord> out(bytes.size() / sizeof(BranchRecord));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(BranchRecord));
  return out;
}

// "from>to" of each record; * marks RECORD_FIRST, @ precedes a known time.
std::string text(const trace::Stream& stream) {
  std::string out;
  for (const BranchRecord& one : records(stream)) {
    out += (one.flags & trace::RECORD_FIRST) != 0 ? "*" : "";
    out.append(std::to_string(one.from_ip)).append(">").append(std::to_string(one.to_ip));
    if (one.tsc != 0) out.append("@").append(std::to_string(one.tsc));
    out.append(" ");
  }
  return out;
}

using Branch = std::pair<std::uint64_t, std::uint64_t>;

std::string stack_sample(const SampleId& id, const std::vector<Branch>& newest_first,
                         std::uint64_t flags = 2) {
  Bytes body;
  body.add(std::uint64_t{77}, id.pid, id.tid, id.tsc / test::kTscPerNs, id.cpu, std::uint32_t{0});
  body.add(static_cast<std::uint64_t>(newest_first.size()));
  for (const auto& [from, to] : newest_first) body.add(from, to, flags);
  return test::record(9, 2, body.str());
}

std::string stacks(const std::string& samples, std::uint64_t branch_type = kAny) {
  return test::perf_file({{.type = 0, .sample_type = kWho | bit(11), .branch_type = branch_type}},
                         time_conversion() + samples, {{9, test::kCpuid}});
}

TEST_F(PerfBranches, MakesStreamsOfBranchStacksByCpu) {
  const auto bundle = read(
      stacks(test::comm({.tsc = 2}, "a", true) + stack_sample({.tid = 10, .tsc = 100}, {{3, 4}, {1, 2}}) +
             stack_sample({.tid = 10, .tsc = 200, .cpu = 1}, {{5, 6}}, 1) +
             stack_sample({.tid = 11, .tsc = 300}, {{9, 10}, {7, 8}, {0, 0}}) + stack_sample({}, {})));
  ASSERT_EQ(bundle.streams.size(), 2U);
  EXPECT_EQ(bundle.format, "perf.data");
  EXPECT_TRUE(bundle.configuration.clock.perf_time_known);
  EXPECT_FALSE(bundle.configuration.rtit_ctl_known);
  const trace::Stream& stream = bundle.streams[0];
  EXPECT_EQ(stream.cpu, 0);
  EXPECT_EQ(text(stream), "*1>2 3>4@100 *7>8 9>10@300 ");
  EXPECT_TRUE(stream.switches_by_offset);
  ASSERT_EQ(stream.switches.size(), 2U);
  EXPECT_EQ(stream.switches[0].tid, 10);
  EXPECT_EQ(stream.switches[0].offset, 0U);
  EXPECT_EQ(bundle.spaces.at(stream.switches[0].space).pid, 10);
  EXPECT_EQ(stream.switches[1].tid, 11);
  EXPECT_EQ(stream.switches[1].offset, 2 * sizeof(BranchRecord));
  EXPECT_EQ(text(bundle.streams[1]), "*5>6@200 ");
  const auto flags = [&](std::size_t number) { return records(bundle.streams[number]).at(0).flags; };
  EXPECT_EQ(flags(0), trace::RECORD_FIRST | trace::RECORD_PREDICTED | trace::RECORD_PREDICTION_KNOWN);
  EXPECT_EQ(flags(1), trace::RECORD_FIRST | trace::RECORD_PREDICTION_KNOWN);
  EXPECT_NE(bundle.metadata.find("\"samples\":1"), std::string::npos);
}

// `count` records; the newest two are equal.
std::vector<Branch> with_copy(std::size_t count) {
  std::vector<Branch> stack;
  for (std::size_t i = 1; i < count; ++i) stack.emplace_back(100 * i, 100 * i - 50);
  stack.insert(stack.begin(), stack.front());
  return stack;
}

std::vector<std::size_t> marked(const trace::Stream& stream) {
  std::vector<std::size_t> numbers;
  const auto all = records(stream);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((all[i].flags & trace::RECORD_MAY_REPEAT) != 0) numbers.push_back(i);
  }
  return numbers;
}

std::string pmu_caps(const std::string& depth) {
  return Bytes()
      .add(std::uint32_t{2})
      .raw(test::text_feature("max_precise") + test::text_feature("3"))
      .raw(test::text_feature("branches") + test::text_feature(depth))
      .str();
}

TEST_F(PerfBranches, MarksCopiesAtTheNewestEndOfFullStacks) {
  for (const std::size_t depth : {8U, 16U, 32U}) {
    SCOPED_TRACE(depth);
    const std::string samples = stack_sample({.tsc = 100}, with_copy(depth)) +
                                stack_sample({.tsc = 200}, with_copy(depth - 1)) +
                                stack_sample({.tsc = 300}, with_copy(depth));
    auto bundle = read(stacks(samples));
    EXPECT_EQ(marked(bundle.streams.at(0)), (std::vector<std::size_t>{depth - 1, 3 * depth - 2}));
    EXPECT_TRUE(warns(bundle, WarningCode::LBR_NEWEST_TWICE, 2));
    // Stacks that leave out branches, and records of a processor with more of them.
    EXPECT_TRUE(marked(read(stacks(samples, 1U << 5U)).streams.at(0)).empty());
    bundle = read(test::perf_file({{.type = 0, .sample_type = kWho | bit(11), .branch_type = kAny}},
                                  time_conversion() + samples, {{28, pmu_caps("64")}}));
    EXPECT_TRUE(marked(bundle.streams.at(0)).empty());
    EXPECT_FALSE(warns(bundle, WarningCode::LBR_NEWEST_TWICE));
  }
  // No processor has 20 records.
  EXPECT_TRUE(marked(read(stacks(stack_sample({.tsc = 100}, with_copy(20)))).streams.at(0)).empty());
}

TEST_F(PerfBranches, ReportsCountersThatWrap) {
  const std::string sample = stack_sample({.tsc = 100}, {{3, 4}});
  const auto clock_of = [&](const std::string& conversion) {
    return read(test::perf_file({{.type = 0, .sample_type = kWho | bit(11), .branch_type = kAny}},
                                conversion + sample, {{9, test::kCpuid}}))
        .configuration.clock;
  };
  const trace::Clock wraps = clock_of(time_conversion(90, 0xffff'ffff, true));
  EXPECT_TRUE(wraps.perf_time_known);
  EXPECT_EQ(wraps.time_cycles, 90U);
  EXPECT_EQ(wraps.time_mask, 0xffff'ffffU);
  EXPECT_EQ(clock_of(time_conversion(90, 0xffff'ffff, false)).time_mask, 0U);
  EXPECT_EQ(clock_of(time_conversion(90, ~std::uint64_t{0}, true)).time_mask, 0U);
}

TEST_F(PerfBranches, MarksBranchesAfterFilteredOnesFirst) {
  constexpr std::uint64_t kAnyCall = 1U << 4U;
  const auto bundle = read(stacks(stack_sample({.tsc = 100}, {{3, 4}, {1, 2}}), kAnyCall));
  EXPECT_EQ(text(bundle.streams.at(0)), "*1>2 *3>4@100 ");
}

// An ELF file of 32 bits (EM_386) or of another machine, with code at 0x100: INC EAX (a prefix in 64-bit
// code), NOP, JMP to the first.
std::string program(std::uint8_t bits_class, std::uint8_t machine) {
  std::string file(0x200, '\0');
  file.replace(0, 5, {'\x7f', 'E', 'L', 'F', static_cast<char>(bits_class)});
  file[18] = static_cast<char>(machine);
  file.replace(0x100, 4, "\x40\x90\xeb\xfc");
  return file;
}

std::string code32_of(const trace::Stream& stream) {
  std::string out;
  for (const BranchRecord& one : records(stream)) out += (one.flags & trace::RECORD_CODE32) != 0 ? "3" : "6";
  return out;
}

constexpr std::uint64_t kAt = 0x8048100;

TEST_F(PerfBranches, MarksCodeOf32BitPrograms) {
  const std::string narrow = scratch_.write("narrow", program(1, 3));
  const std::string wide = scratch_.write("wide", program(2, 62));
  const std::string x32 = scratch_.write("x32", program(1, 62));
  const std::vector<Branch> round{{kAt + 2, kAt}, {kAt + 2, 0xffffffff81000000}, {kAt + 2, kAt}};
  const auto exec = [](std::uint64_t tsc, const std::string& path) {
    return test::comm({.tsc = tsc}, "a", true) + test::mmap2({.tsc = tsc}, 0x8048000, 0x1000, 0, path);
  };
  auto bundle =
      read(stacks(exec(10, narrow) + test::mmap2({.tsc = 20}, 0x9048000, 0x1000, 0, wide) +
                  stack_sample({.tsc = 100}, round) + exec(200, wide) + stack_sample({.tsc = 300}, round) +
                  exec(400, x32) + stack_sample({.tsc = 500}, round)));
  EXPECT_EQ(code32_of(bundle.streams.at(0)), "363666666");
  bundle = read(stacks(exec(0, narrow) + stack_sample({.tsc = 100}, {round[0], round[0]})));
  const auto shared = std::make_shared<trace::TraceBundle>(std::move(bundle));
  const code::image::Image image(shared);
  Ips rows;
  time::TimeTrack track = time::TimeTrack::of_records(shared->streams[0].data.bytes());
  flow::RecordDecoder decoder(shared->streams[0], shared->configuration, image, rows, &track);
  while (decoder.run()) {
  }
  EXPECT_EQ(rows.all, (std::vector<std::uint64_t>{kAt + 2, kAt, kAt + 1, kAt + 2}));
}

// Without the file, the ABI of a sample's registers shows 32-bit code.
TEST_F(PerfBranches, TakesCode32FromSampledRegisters) {
  const auto sample = [](std::uint64_t abi) {
    Bytes body;
    body.add(std::uint64_t{77}, std::uint32_t{10}, std::uint32_t{10}, std::uint64_t{50}, std::uint32_t{0},
             std::uint32_t{0}, std::uint64_t{1}, kAt + 2, kAt, std::uint64_t{0}, abi, std::uint64_t{9});
    return test::record(9, 2, body.str());
  };
  const Attribute attribute{
      .type = 0, .sample_type = kWho | bit(11) | bit(12), .branch_type = kAny, .user_regs = 4};
  const auto bundle =
      read(test::perf_file({attribute}, time_conversion() + sample(1) + sample(2), {{9, test::kCpuid}}));
  EXPECT_EQ(code32_of(bundle.streams.at(0)), "36");
}

TEST_F(PerfBranches, IgnoresCallStacks) {
  constexpr std::uint64_t kCallStack = 1U << 11U;
  const auto bundle =
      open(scratch_.write("perf.data", stacks(stack_sample({.tsc = 100}, {{3, 4}}), kCallStack | kAny)), {});
  ASSERT_FALSE(bundle.ok());
  EXPECT_NE(bundle.failure().detail.find("or -b"), std::string::npos);
}

TEST_F(PerfBranches, IgnoresBranchStacksBesideATrace) {
  const auto bundle =
      read(test::perf_file({{}, {.type = 0, .sample_type = kWho | bit(11), .branch_type = kAny}},
                           test::auxtrace_info() + test::auxtrace(0, kEach, 0, 0, test::small_stream()) +
                               stack_sample({.tsc = 100}, {{3, 4}}),
                           {}));
  ASSERT_EQ(bundle.streams.size(), 1U);
  EXPECT_EQ(bundle.streams[0].kind, trace::StreamKind::PROCESSOR_TRACE);
}

std::string store_info(bool snapshots = false) {
  Bytes body;
  body.add(std::uint64_t{2}, std::uint64_t{test::kPmu}, std::uint64_t{10},
           std::uint64_t{1024 / test::kTscPerNs}, std::uint64_t{0}, std::uint64_t{1},
           std::uint64_t{snapshots});
  return test::record(70, 0, body.str());
}

// BTS records of branches n>n+1, (n+2)>(n+3) ...
std::string stored(std::uint64_t first, std::size_t count, std::uint64_t flags = 0) {
  Bytes out;
  for (std::uint64_t i = 0; i < count; ++i) out.add(first + 2 * i, first + 2 * i + 1, flags);
  return out.str();
}

TEST_F(PerfBranches, AssignsBtsOfATaskToTheThreadOfTheAuxRecord) {
  const std::string task = stored(10, 2) + std::string(24, '\0') + stored(20, 1, 16) + std::string(7, '\x01');
  const auto bundle =
      read(test::perf_file(store_info() + test::aux({.pid = 10, .tid = 11, .tsc = 100, .cpu = 3}, 0, 24, 0) +
                           test::aux({.pid = 10, .tid = 12, .tsc = 200, .cpu = 3}, 24, 72, 1) +
                           test::auxtrace(0, 10, 3, 0, task)));
  const trace::Stream& stream = bundle.streams.at(0);
  EXPECT_EQ(text(stream), "*10>11@100 12>13 20>21@200 ");
  ASSERT_EQ(stream.switches.size(), 2U);
  EXPECT_EQ(stream.switches[0].tid, 11);
  EXPECT_EQ(stream.switches[1].tid, 12);
  EXPECT_EQ(stream.switches[1].offset, sizeof(BranchRecord));
  EXPECT_EQ(stream.switches[1].tsc, 200U);
  ASSERT_EQ(stream.losses.size(), 1U);
  EXPECT_EQ(stream.losses[0].offset, 3 * sizeof(BranchRecord));
  EXPECT_EQ(records(stream)[0].flags, trace::RECORD_FIRST | trace::RECORD_PREDICTION_KNOWN);
  EXPECT_EQ(records(stream)[2].flags, trace::RECORD_PREDICTED | trace::RECORD_PREDICTION_KNOWN);
}

TEST_F(PerfBranches, AssignsBtsOfACpuToTheOnlyRunningThread) {
  const auto in = [](std::uint32_t tid, std::uint64_t tsc) {
    return test::switched({.pid = tid, .tid = tid, .tsc = tsc}, false);
  };
  const std::string aux_records = test::aux({.tsc = 100}, 0, 24, 0) + test::aux({.tsc = 200}, 24, 24, 0) +
                                  test::aux({.tsc = 300}, 48, 24, 0) +
                                  test::auxtrace(0, kEach, 0, 0, stored(10, 3));
  const auto bundle =
      read(test::perf_file(store_info() + in(20, 50) + in(21, 150) + in(0, 202) + in(22, 250) + aux_records));
  const auto& switches = bundle.streams.at(0).switches;
  ASSERT_EQ(switches.size(), 3U);
  EXPECT_EQ(switches[0].tid, 20);
  EXPECT_EQ(switches[1].tid, trace::kNoId);  // 20, then 21
  EXPECT_EQ(switches[2].tid, trace::kNoId);  // 21, then 22
  const auto alone =
      read(test::perf_file(store_info() + in(20, 50) + in(0, 160) + in(22, 250) + aux_records));
  EXPECT_EQ(alone.streams.at(0).switches.at(1).tid, 20);
  EXPECT_EQ(alone.streams.at(0).switches.at(2).tid, 22);
}

// The owner ran during the whole time since the buffer was drained before.
TEST_F(PerfBranches, AssignsBtsBetweenTwoAuxRecords) {
  const auto in = [](std::uint32_t tid, std::uint64_t tsc, bool out = false) {
    return test::switched({.pid = tid, .tid = tid, .tsc = tsc}, out);
  };
  std::string notes;
  for (std::uint64_t i = 0; i < 7; ++i) notes += test::aux({.tsc = 100 * (i + 1)}, 24 * i, 24, 0);
  const std::string runs = in(20, 110) + in(20, 120, true) + in(20, 130) + in(20, 190, true) + in(0, 210) +
                           in(21, 310) + in(21, 390) + in(20, 420) + in(21, 430) + in(21, 590, true);
  const auto bundle =
      read(test::perf_file(store_info() + runs + notes + test::auxtrace(0, kEach, 0, 0, stored(10, 7))));
  std::vector<std::int64_t> tids;
  for (const trace::Switch& one : bundle.streams.at(0).switches) tids.push_back(one.tid);
  const std::int64_t none = trace::kNoId;
  // No thread yet; 20 twice; none; 21 twice; 21, 20 and 21; still 21; none.
  EXPECT_EQ(tids, (std::vector<std::int64_t>{none, 20, none, 21, none, 21, none}));
}

// A file may hold very many buffers, AUX records, switches and losses.
TEST_F(PerfBranches, TakesLessThanQuadraticTimeForManyBuffers) {
  constexpr std::uint32_t kMany = 20'000;
  std::string all = store_info();
  for (std::uint32_t i = 0; i < kMany; ++i) {
    const std::uint64_t tsc = 2 * (i + 1);
    all += test::switched({.pid = 20 + i % 2, .tid = 20 + i % 2, .tsc = tsc}, false);
    all += test::aux({.tsc = 2 * kMany + tsc}, 24 * i, 24, 1);
    all += test::auxtrace(i, kEach, 0, 24 * i, stored(10 + i, 1));
  }
  const double seconds = ptkit::test::seconds_of([&] {
    const auto bundle = read(test::perf_file(all));
    ASSERT_EQ(bundle.streams.size(), kMany);
    EXPECT_EQ(bundle.streams[7].losses.size(), 2U);
  });
  EXPECT_LT(seconds, 10.0);
}

TEST_F(PerfBranches, TakesLessThanQuadraticTimeForManyAuxRecords) {
  constexpr std::uint32_t kMany = 300'000;
  std::string all = store_info();
  for (std::uint32_t i = 0; i < kMany; ++i) all += test::aux({.tsc = 2 * (i + 1)}, 24 * i, 24, 0);
  all += test::auxtrace(0, kEach, 0, 0, stored(10, kMany));
  const double seconds = ptkit::test::seconds_of([&] {
    const auto bundle = read(test::perf_file(all));
    EXPECT_EQ(records(bundle.streams.at(0)).size(), kMany);
  });
  EXPECT_LT(seconds, 10.0);
}

// The kernel code that drains the buffer is not recorded.
TEST_F(PerfBranches, BreaksPathsAtDrainsOfKernelTraces) {
  const std::string aux_records = test::aux({.tsc = 100}, 0, 48, 0) + test::aux({.tsc = 200}, 48, 24, 0) +
                                  test::aux({.tsc = 300}, 72, 48, 0) +
                                  test::auxtrace(0, 10, 0, 0, stored(10, 2)) +
                                  test::auxtrace(0, 10, 0, 48, stored(20, 3));
  const auto with = [&](std::uint64_t exclude) {
    return text(read(test::perf_file(store_info() + aux_records, exclude)).streams.at(0));
  };
  EXPECT_EQ(with(test::kOsAndUser), "*10>11 12>13@100 *20>21@200 *22>23 24>25@300 ");
  EXPECT_EQ(with(test::kUserOnly), "*10>11 12>13@100 20>21@200 22>23 24>25@300 ");
}

// perf leaves out the ring's end that is too small for a record. A hole is a loss.
TEST_F(PerfBranches, JoinsChunksOfBts) {
  const auto bundle = read(test::perf_file(store_info() + test::auxtrace(0, kEach, 0, 0, stored(10, 2)) +
                                           test::auxtrace(0, kEach, 0, 64, stored(20, 2)) +
                                           test::auxtrace(0, kEach, 0, 208, stored(30, 1))));
  const trace::Stream& stream = bundle.streams.at(0);
  EXPECT_EQ(text(stream), "*10>11 12>13 20>21 22>23 *30>31 ");
  ASSERT_EQ(stream.losses.size(), 1U);
  EXPECT_EQ(stream.losses[0].offset, 4 * sizeof(BranchRecord));
  EXPECT_EQ(stream.losses[0].lost_bytes, 96U);
  EXPECT_TRUE(stream.switches.empty());
}

TEST_F(PerfBranches, JoinsSnapshotsOfBts) {
  const auto chunk = [](std::uint64_t first, std::size_t count) {
    return test::auxtrace(0, 10, kEach, 0, stored(first, count));
  };
  const auto bundle =
      read(test::perf_file(store_info(true) + chunk(1000, 300) + chunk(1200, 300) + chunk(9000, 2)));
  const trace::Stream& stream = bundle.streams.at(0);
  EXPECT_EQ(stream.tid, 10);
  const auto found = records(stream);
  ASSERT_EQ(found.size(), 402U);
  for (std::size_t i = 0; i < 400; ++i) ASSERT_EQ(found[i].from_ip, 1000 + 2 * i);
  EXPECT_EQ(found[0].flags & trace::RECORD_FIRST, trace::RECORD_FIRST);
  // Nothing is traced while perf copies the ring.
  EXPECT_EQ(found[299].flags & trace::RECORD_FIRST, 0U);
  EXPECT_EQ(found[300].flags & trace::RECORD_FIRST, trace::RECORD_FIRST);
  EXPECT_EQ(found[400].flags & trace::RECORD_FIRST, trace::RECORD_FIRST);
  ASSERT_EQ(stream.losses.size(), 1U);
}

TEST_F(PerfBranches, ReadsSamplesOfEachBranch) {
  const Attribute each{.type = 0, .config = 4, .sample_type = kWho | bit(0) | bit(3) | bit(8), .period = 1};
  const auto branch = [](std::uint64_t tsc, std::uint64_t from, std::uint64_t to) {
    Bytes body;
    body.add(std::uint64_t{77}, from, std::uint32_t{10}, std::uint32_t{11}, tsc / test::kTscPerNs, to,
             std::uint32_t{0}, std::uint32_t{0}, std::uint64_t{1});
    return test::record(9, 2, body.str());
  };
  const std::string samples = time_conversion() + branch(100, 1, 2) + branch(100, 3, 4) + branch(200, 5, 6) +
                              test::event(2, 0, Bytes().add(std::uint64_t{1}, std::uint64_t{5}).str(), {}) +
                              branch(300, 7, 8) + branch(300, 9, 0);
  const auto bundle = read(test::perf_file({each}, samples, {}));
  const trace::Stream& stream = bundle.streams.at(0);
  EXPECT_EQ(text(stream), "*1>2 3>4@100 5>6@200 *7>8@300 ");
  ASSERT_EQ(stream.losses.size(), 1U);
  EXPECT_EQ(stream.losses[0].offset, 3 * sizeof(BranchRecord));
  ASSERT_EQ(stream.switches.size(), 1U);
  EXPECT_EQ(stream.switches[0].tid, 11);
  // A loss after the last branch counts. Two losses at one offset are one.
  const std::string lost = test::event(2, 0, Bytes().add(std::uint64_t{1}, std::uint64_t{5}).str(), {});
  const auto at_end = read(test::perf_file({each}, time_conversion() + branch(100, 1, 2) + lost + lost, {}));
  ASSERT_EQ(at_end.streams.at(0).losses.size(), 1U);
  EXPECT_EQ(at_end.streams[0].losses[0].offset, sizeof(BranchRecord));
  const auto lost_samples = [](const std::string& count) { return test::event(13, 0, count, {}); };
  const std::string twelve = lost_samples(Bytes().add(std::uint64_t{12}).str());
  const auto between = read(test::perf_file(
      {each}, time_conversion() + branch(100, 1, 2) + twelve + branch(200, 3, 4) + lost_samples(""), {}));
  EXPECT_EQ(text(between.streams.at(0)), "*1>2@100 *3>4@200 ");
  ASSERT_EQ(between.streams[0].losses.size(), 2U);  // the other loss has an unknown size
  EXPECT_EQ(between.streams[0].losses[0].offset, sizeof(BranchRecord));
  EXPECT_EQ(between.streams[0].losses[0].cause, base::Status::BUFFER_FULL);
  EXPECT_TRUE(warns(between, WarningCode::PERF_SAMPLES_LOST, 12));
  EXPECT_TRUE(warns(between, WarningCode::PERF_RECORDS_SHORT, 1));
  Attribute every_tenth = each;
  every_tenth.period = 10;
  EXPECT_FALSE(open(scratch_.write("perf.data", test::perf_file({every_tenth}, samples, {})), {}).ok());
}

TEST_F(PerfBranches, TakesLessThanQuadraticTimeForManyLosses) {
  constexpr std::uint32_t kMany = 30'000;
  const Attribute each{.type = 0, .config = 4, .sample_type = kWho | bit(0) | bit(3) | bit(8), .period = 1};
  std::string all = time_conversion();
  for (std::uint32_t i = 0; i < kMany; ++i) {
    Bytes body;
    body.add(std::uint64_t{77}, std::uint64_t{1}, std::uint32_t{10}, std::uint32_t{11}, std::uint64_t{i + 1},
             std::uint64_t{2}, i, std::uint32_t{0}, std::uint64_t{1});
    all += test::record(9, 2, body.str());
    all += test::event(2, 0, Bytes().add(std::uint64_t{1}, std::uint64_t{5}).str(), {});
  }
  const double seconds = ptkit::test::seconds_of([&] {
    const auto bundle = read(test::perf_file({each}, all, {}));
    ASSERT_EQ(bundle.streams.size(), kMany);
    EXPECT_EQ(bundle.streams[0].losses.size(), 1U);
    EXPECT_EQ(bundle.streams[kMany - 1].losses.size(), 1U);
  });
  EXPECT_LT(seconds, 10.0);
}

}  // namespace
}  // namespace ptkit::formats
