// The perf back end with Branch Trace Store and branch stacks, with a fake kernel that behaves as Linux does.
#include <sys/ioctl.h>

#include <cstring>

#include "capture/linux/perf/branches.h"
#include "fake_bts.h"
#include "recording.h"
#include "trace/branch_record.h"

namespace ptkit::capture::test {
namespace {

namespace perf = formats::perf;
using trace::BranchRecord;

constexpr std::uint64_t kKernel = 0xffffffff81000000;

class PerfBts : public PerfRecording {
 protected:
  PerfBts() {
    options_.bts = true;
    options_.cpus.all = false;
  }

  void of_this_process() {
    options_.pid = ::getpid();
    options_.seconds = std::chrono::milliseconds(50);
  }
};

std::vector<BranchRecord> records_of(const trace::Stream& stream) {
  EXPECT_EQ(stream.kind, trace::StreamKind::BRANCH_RECORDS);
  const base::Bytes bytes = stream.data.bytes();
  EXPECT_EQ(bytes.size() % sizeof(BranchRecord), 0U);
  std::vector<BranchRecord> out(bytes.size() / sizeof(BranchRecord));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

std::vector<Branch> branches_of(const trace::Stream& stream) {
  std::vector<Branch> out;
  for (const BranchRecord& one : records_of(stream)) out.emplace_back(one.from_ip, one.to_ip);
  return out;
}

// Indices of records with the flag FIRST.
std::vector<std::size_t> first_of(const trace::Stream& stream) {
  std::vector<std::size_t> out;
  const auto records = records_of(stream);
  for (std::size_t i = 0; i < records.size(); ++i) {
    if ((records[i].flags & trace::RECORD_FIRST) != 0) out.push_back(i);
  }
  return out;
}

// "index of the first record: tid" for each switch.
std::vector<std::pair<std::size_t, std::int64_t>> owners_of(const trace::Stream& stream) {
  EXPECT_TRUE(stream.switches_by_offset);
  std::vector<std::pair<std::size_t, std::int64_t>> out;
  for (const trace::Switch& one : stream.switches)
    out.emplace_back(one.offset / sizeof(BranchRecord), one.tid);
  return out;
}

using Owners = std::vector<std::pair<std::size_t, std::int64_t>>;
using Positions = std::vector<std::size_t>;

std::vector<Branch> jumps(std::uint64_t from, std::size_t count) {
  std::vector<Branch> out;
  for (std::size_t i = 0; i < count; ++i) out.emplace_back(0x400000 + from + i, 0x500000 + from + i);
  return out;
}

// ---- Branch Trace Store

TEST_F(PerfBts, AttributesBranchesToThreads) {
  of_this_process();
  const int pid = ::getpid();
  kernel_.script.emplace_back([&](FakeKernel& kernel) {
    FakeBts store(kernel, 1);
    store.store({100, pid, pid}, {{1, 2}, {3, 4}});
    store.store({200, pid, kFirst}, {{5, 6}}, 0x10);
    store.store({300, pid, kFirst}, {{7, 8}});
    store.store({400, pid, pid}, {{kKernel, 10}});
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().warnings.empty());
  const trace::TraceBundle bundle = read();
  ASSERT_EQ(bundle.streams.size(), 2U);
  const trace::Stream& stream = bundle.streams[1];
  EXPECT_EQ(branches_of(stream), (std::vector<Branch>{{1, 2}, {3, 4}, {5, 6}, {7, 8}, {kKernel, 10}}));
  EXPECT_EQ(first_of(stream), (Positions{0}));
  EXPECT_EQ(owners_of(stream), (Owners{{0, pid}, {2, kFirst}, {4, pid}}));
  std::vector<std::uint64_t> times;
  for (const BranchRecord& one : records_of(stream)) times.push_back(one.tsc);
  EXPECT_EQ(times, (std::vector<std::uint64_t>{0, 100, 200, 300, 400}));
  // The first predicted branch shows that this processor sets the flag.
  EXPECT_EQ(records_of(stream)[1].flags, 0U);
  EXPECT_EQ(records_of(stream)[2].flags, trace::RECORD_PREDICTED | trace::RECORD_PREDICTION_KNOWN);
  EXPECT_EQ(records_of(stream)[3].flags, trace::RECORD_PREDICTION_KNOWN);
  EXPECT_EQ(result.value().trace_bytes, 5 * sizeof(BranchRecord));
  EXPECT_FALSE(bundle.configuration.rtit_ctl_known);
  EXPECT_TRUE(bundle.streams[0].data.bytes().empty());
}

TEST_F(PerfBts, OpensEventsAsForPackets) {
  of_this_process();
  ASSERT_TRUE(record().ok());
  EXPECT_TRUE(kernel_.of_type(kPtType).empty());
  const auto units = kernel_.of_type(kBtsType);
  ASSERT_EQ(units.size(), 2U);
  EXPECT_EQ(units[0]->attr.config, 0U);
  EXPECT_EQ(units[0]->attr.inherit, 1U);
  EXPECT_EQ(units[0]->attr.exclude_kernel, 1U);
  std::size_t restarts = 0;
  for (const FakeKernel::Event* one : kernel_.of_type(PERF_TYPE_SOFTWARE)) {
    EXPECT_EQ(one->attr.context_switch, 0U);  // AUX records have the thread
    restarts += one->attr.enable_on_exec;
  }
  EXPECT_EQ(restarts, 2U);
}

TEST_F(PerfBts, WrapsAndSkipsPadding) {
  of_this_process();
  options_.buffer = 16 * 1024;
  std::vector<Branch> expected;
  for (std::uint64_t i = 0; i < 40; ++i) {
    kernel_.script.emplace_back([&, i](FakeKernel& kernel) {
      const auto more = jumps(i * 1000, 331);
      FakeBts(kernel, 0).store({100 + i, ::getpid(), ::getpid()}, more);
      append(expected, more);
    });
  }
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const trace::TraceBundle bundle = read();
  EXPECT_EQ(branches_of(bundle.streams[0]), expected);
  EXPECT_EQ(first_of(bundle.streams[0]), (Positions{0}));
  EXPECT_TRUE(bundle.streams[0].losses.empty());
  EXPECT_GT(kernel_.buffer(0).page().aux_head, 16U * 1024 * 10);
}

TEST_F(PerfBts, ReportsFullBufferAsLoss) {
  of_this_process();
  options_.buffer = 4096;
  constexpr std::size_t kRoom = 4096 / kStoredBytes;
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    FakeBts(kernel, 0).store({100, ::getpid(), ::getpid()}, jumps(0, 500));
    FakeBts(kernel, 0).store({101, ::getpid(), ::getpid()}, jumps(500, 5));  // tracing is off
  });
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    FakeBts(kernel, 0).store({200, ::getpid(), ::getpid()}, jumps(900, 3));
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const trace::Stream stream = read().streams[0];
  std::vector<Branch> expected = jumps(0, kRoom);
  append(expected, jumps(900, 3));
  EXPECT_EQ(branches_of(stream), expected);
  EXPECT_EQ(losses_of(stream), (Losses{{kRoom * sizeof(BranchRecord), base::Status::BUFFER_FULL}}));
  EXPECT_EQ(first_of(stream), (Positions{0, kRoom}));
  EXPECT_TRUE(warns_at(result.value().warnings, "CPU 0", WarningCode::AUX_TRUNCATED, 1));
}

// Data without an AUX record may be old, and is not read.
TEST_F(PerfBts, ReportsLostAuxRecordsAsLosses) {
  of_this_process();
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    FakeBts(kernel, 0).store({100, ::getpid(), ::getpid()}, jumps(0, 10));
    kernel.buffer(0).page().aux_head += 300 * kStoredBytes;
  });
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    FakeBts(kernel, 0).store({200, ::getpid(), ::getpid()}, jumps(900, 3));
  });
  ASSERT_TRUE(record().ok());
  const trace::Stream stream = read().streams[0];
  std::vector<Branch> expected = jumps(0, 10);
  append(expected, jumps(900, 3));
  EXPECT_EQ(branches_of(stream), expected);
  EXPECT_EQ(losses_of(stream), (Losses{{10 * sizeof(BranchRecord), base::Status::BUFFER_FULL}}));
  EXPECT_EQ(first_of(stream), (Positions{0, 10}));
}

// The AUX record of data that can be seen already is not lost.
TEST_F(PerfBts, WaitsForRecordsThatComeLater) {
  of_this_process();
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    kernel.begin_nested(0);
    FakeBts(kernel, 0).store({100, ::getpid(), ::getpid()}, jumps(0, 10));
  });
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    EXPECT_EQ(kernel.buffer(0).page().aux_tail, 0U);
    kernel.end_nested(0);
  });
  ASSERT_TRUE(record().ok());
  const trace::Stream stream = read().streams[0];
  EXPECT_EQ(branches_of(stream), jumps(0, 10));
  EXPECT_TRUE(stream.losses.empty());
}

TEST_F(PerfBts, CountsImplausibleAuxRecords) {
  of_this_process();
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    FakeBts(kernel, 0).store({100, ::getpid(), ::getpid()}, jumps(0, 10));
    perf_event_mmap_page& page = kernel.buffer(0).page();
    page.aux_head -= 48;
    kernel.write_aux_record(0, {101, 1, 1}, 48, page.aux_head + 48, 0);            // the same data again
    kernel.write_aux_record(0, {102, 1, 1}, ~std::uint64_t{0}, page.aux_head, 0);  // larger than the buffer
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(branches_of(read().streams[0]), jumps(0, 10));
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::RECORDS_INVALID, 2));
}

// The kernel's branches between two AUX records are not recorded.
TEST_F(PerfBts, StartsNewKernelPathAfterEachAuxRecord) {
  of_this_process();
  options_.levels.kernel = true;
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    FakeBts(kernel, 0).store({100, ::getpid(), ::getpid()}, jumps(0, 3));
    FakeBts(kernel, 0).store({200, ::getpid(), ::getpid()}, jumps(3, 3));
  });
  ASSERT_TRUE(record().ok());
  EXPECT_EQ(first_of(read().streams[0]), (Positions{0, 3}));
}

TEST_F(PerfBts, AttributesBranchesOfCpuToOnlyRunningThread) {
  options_.cpus.numbers = {0};
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    FakeBts store(kernel, 0);
    const auto in = [&](std::uint64_t time, int tid) {
      kernel.write_record(0, perf::SWITCH_CPU_WIDE, 0, {time, tid, tid}, ids({1, 1}));
    };
    in(50, kFirst);
    store.store({100, 7, 7}, {{1, 2}});  // the thread that runs when the kernel drains the buffer
    store.store({200, 7, 7}, {{3, 4}});
    in(250, kFirst + 1);
    store.store({300, 7, 7}, {{5, 6}});  // branches of two threads
    store.store({400, 7, 7}, {{7, 8}});
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const trace::Stream stream = read().streams[0];
  EXPECT_EQ(owners_of(stream), (Owners{{0, kFirst}, {2, trace::kNoId}, {3, kFirst + 1}}));
  EXPECT_EQ(kernel_.of_type(kBtsType)[0]->attr.aux_watermark, 64U * 1024);
  for (const FakeKernel::Event* one : kernel_.of_type(PERF_TYPE_SOFTWARE)) {
    EXPECT_EQ(one->attr.context_switch, 1U);
    EXPECT_EQ(one->attr.enable_on_exec, 0U);
  }
}

TEST_F(PerfBts, StartsNewSpaceAtExec) {
  of_this_process();
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    FakeBts store(kernel, 0);
    store.store({100, kFirst, kFirst}, {{1, 2}});
    Bytes name = ids({kFirst, kFirst});
    append(name, {'s', 'h', 0, 0, 0, 0, 0, 0});
    kernel.write_record(0, perf::COMM, perf::kMiscCommExec, {150, kFirst, kFirst}, name);
    store.store({200, kFirst, kFirst}, {{3, 4}});
  });
  ASSERT_TRUE(record().ok());
  const trace::Stream stream = read().streams[0];
  ASSERT_EQ(owners_of(stream), (Owners{{0, kFirst}, {1, kFirst}}));
  EXPECT_NE(stream.switches[0].space, stream.switches[1].space);
}

TEST_F(PerfBts, TakesSnapshots) {
  of_this_process();
  options_.ring = 4096;
  constexpr std::size_t kRing = 4096 / kStoredBytes;
  const std::vector<std::size_t> parts{10, kRing - 3, 0, 2 * kRing + 7, 1};
  std::vector<Branch> all;
  std::vector<Branch> joined;
  Losses losses;
  Positions begins;
  std::size_t kept = 0;
  for (const std::size_t part : parts) {
    kernel_.script.emplace_back([&, part](FakeKernel& kernel) {
      const auto more = jumps(all.size(), part);
      FakeBts(kernel, 0).store({100 + all.size(), ::getpid(), ::getpid()}, more);
      append(all, more);
      EXPECT_FALSE(recorder_->snapshot());
      if (all.size() - kept >= kRing) {
        kept = all.size() - kRing;
        losses.emplace_back(joined.size() * sizeof(BranchRecord), base::Status::RING_WRAPPED);
      }
      if (kept != all.size()) begins.push_back(joined.size());
      append(joined, {all.begin() + static_cast<std::ptrdiff_t>(kept), all.end()});
      kept = all.size();
    });
  }
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const trace::Stream stream = read().streams[0];
  EXPECT_EQ(branches_of(stream), joined);
  EXPECT_EQ(losses_of(stream), losses);
  EXPECT_EQ(losses.size(), 1U);
  EXPECT_EQ(first_of(stream), begins);
  EXPECT_EQ(owners_of(stream), (Owners{{0, ::getpid()}}));
}

// AUX records of a ring do not have the number of laps.
TEST_F(PerfBts, AttributesOnlyEndOfSnapshotToLastThread) {
  of_this_process();
  options_.ring = 4096;
  const int pid = ::getpid();
  kernel_.script.emplace_back([&](FakeKernel& kernel) {
    FakeBts store(kernel, 0);
    store.store({100, pid, pid}, jumps(0, 20));
    store.store({200, pid, kFirst}, jumps(20, 5));
    store.store({300, pid, pid}, jumps(25, 30));
    FakeBts other(kernel, 1);
    other.store({100, pid, pid}, jumps(0, 20));
    other.store({300, kFirst + 1, kFirst + 1}, jumps(20, 30));
  });
  ASSERT_TRUE(record().ok());
  const trace::TraceBundle bundle = read();
  EXPECT_EQ(owners_of(bundle.streams[0]), (Owners{{0, trace::kNoId}, {25, pid}}));
  EXPECT_EQ(bundle.streams[0].switches[0].pid, pid);
  EXPECT_EQ(bundle.streams[0].switches[0].space, bundle.streams[0].switches[1].space);
  EXPECT_EQ(owners_of(bundle.streams[1]), (Owners{{0, trace::kNoId}, {20, kFirst + 1}}));
  EXPECT_EQ(bundle.streams[1].switches[0].pid, trace::kNoId);
}

TEST_F(PerfBts, ForgetsOwnerOfSnapshotAtExec) {
  of_this_process();
  options_.ring = 4096;
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    FakeBts(kernel, 0).store({100, kFirst, kFirst}, jumps(0, 20));
    Bytes name = ids({kFirst, kFirst});
    append(name, {'s', 'h', 0, 0, 0, 0, 0, 0});
    kernel.write_record(0, perf::COMM, perf::kMiscCommExec, {150, kFirst, kFirst}, name);
    FakeBts(kernel, 0).store({200, kFirst, kFirst}, jumps(20, 5));
  });
  ASSERT_TRUE(record().ok());
  EXPECT_EQ(owners_of(read().streams[0]), (Owners{{0, trace::kNoId}, {20, kFirst}}));
}

TEST_F(PerfBts, RejectsPacketOptionsByName) {
  const std::vector<std::pair<std::string, std::function<void(RecordOptions&)>>> cases{
      {"return_compression: ", [](RecordOptions& one) { one.return_compression = false; }},
      {"psb_period: ", [](RecordOptions& one) { one.psb_period = 2048; }},
      {"cyc_threshold: ", [](RecordOptions& one) { one.cyc_threshold = 3; }},
      {"packets: ", [](RecordOptions& one) { one.packets.ptwrite = true; }},
      {"event: ", [](RecordOptions& one) { one.event = "tsc"; }},
      {"single_range: ", [](RecordOptions& one) { one.single_range = true; }},
      {"filters: ", [](RecordOptions& one) { one.filters.emplace_back(); }},
      {"tnt_64: ", [](RecordOptions& one) { one.tnt_64 = true; }},
      {"max_instructions: ", [](RecordOptions& one) { one.max_instructions = 5; }},
  };
  of_this_process();
  const RecordOptions defaults = options_;
  for (const auto& [words, change] : cases) {
    options_ = defaults;
    change(options_);
    EXPECT_EQ(refused().substr(0, words.size()), words) << refused();
  }
}

TEST_F(PerfBts, ReportsMissingBts) {
  of_this_process();
  kernel_.files.erase(kBtsFile);
  EXPECT_NE(refused().find("the kernel has no intel_bts event, though"), std::string::npos) << refused();
  kernel_.files["/sys/devices/system/cpu/vulnerabilities/meltdown"] = "Mitigation: PTI";
  EXPECT_NE(refused().find("while it isolates page tables (meltdown: Mitigation: PTI); boot with pti=off"),
            std::string::npos)
      << refused();
  kernel_.files["/proc/cpuinfo"] = "flags\t: fpu bts intel_pt";
  EXPECT_NE(refused().find("this processor has no Branch Trace Store (CPUID: DS, DTES64)"),
            std::string::npos);
  kernel_.files.erase("/proc/sys/kernel/perf_event_paranoid");
  EXPECT_NE(refused().find("this kernel has no perf events"), std::string::npos);
}

TEST_F(PerfBts, ReportsOpenErrorsInOneLine) {
  of_this_process();
  const std::vector<std::pair<int, std::string>> cases{
      {EBUSY, "Branch Trace Store is in use, or excluded by what else is recorded"},
      {EACCES, "tracing programs needs kernel.perf_event_paranoid at most 1, and it is 2"},
      {EOPNOTSUPP, "the kernel's intel_bts cannot do this"},
      {EMFILE, "ulimit -n"},
  };
  for (const auto& [error, words] : cases) {
    kernel_.open_error = [number = error](const perf_event_attr&, int, int) { return number; };
    EXPECT_NE(refused().find(words), std::string::npos) << words << ": " << refused();
  }
  kernel_.open_error = nullptr;
  reset_unit_options(options_);
  options_.bts = true;
  options_.cpus.numbers = {5};
  EXPECT_NE(refused().find("cpus: processor 5 is not there"), std::string::npos);
}

// ---- branch stacks

class PerfLbr : public PerfRecording {
 protected:
  PerfLbr() {
    reset_unit_options(options_);
    options_.branch_stack = "any";
    options_.pid = ::getpid();
    options_.seconds = std::chrono::milliseconds(50);
  }
};

// A sample as the kernel writes it: the newest branch first.
void sample(FakeKernel& kernel, int cpu, const FakeKernel::SampleId& id,
            const std::vector<Branch>& newest_first) {
  Bytes body;
  FakeKernel::put(body, 77, 8);
  FakeKernel::put(body, static_cast<std::uint32_t>(id.pid), 4);
  FakeKernel::put(body, static_cast<std::uint32_t>(id.tid), 4);
  FakeKernel::put(body, id.time, 8);
  FakeKernel::put(body, static_cast<std::uint32_t>(cpu), 8);
  FakeKernel::put(body, newest_first.size(), 8);
  for (const Branch& branch : newest_first) append(body, stored_bytes(branch, 2));
  FakeKernel::write_raw_record(kernel.buffer(cpu), perf::SAMPLE, 0, body);
}

TEST_F(PerfLbr, ConvertsStacksToBranchRecords) {
  const int pid = ::getpid();
  kernel_.script.emplace_back([&](FakeKernel& kernel) {
    sample(kernel, 0, {100, pid, pid}, {{3, 4}, {1, 2}});
    sample(kernel, 0, {200, pid, kFirst}, {{5, 6}});
    sample(kernel, 0, {300, pid, kFirst}, {});
    sample(kernel, 0, {400, pid, kFirst}, {{9, 10}, {7, 8}});
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const trace::Stream stream = read().streams[0];
  EXPECT_EQ(branches_of(stream), (std::vector<Branch>{{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}}));
  EXPECT_EQ(first_of(stream), (Positions{0, 2, 3}));
  EXPECT_EQ(owners_of(stream), (Owners{{0, pid}, {2, kFirst}}));
  EXPECT_EQ(records_of(stream)[1].tsc, 100U);
  EXPECT_EQ(records_of(stream)[4].tsc, 400U);
  EXPECT_EQ(result.value().trace_bytes, 5 * sizeof(BranchRecord));
}

TEST_F(PerfLbr, MarksEachFilteredBranchAsFirst) {
  options_.branch_stack = "any_call,ind_jmp";
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    sample(kernel, 0, {100, ::getpid(), ::getpid()}, {{3, 4}, {1, 2}});
  });
  ASSERT_TRUE(record().ok());
  EXPECT_EQ(first_of(read().streams[0]), (Positions{0, 1}));
  EXPECT_EQ(kernel_.of_type(PERF_TYPE_HARDWARE)[0]->attr.branch_sample_type,
            PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_IND_JUMP);
}

TEST_F(PerfLbr, MarksCopiesAtTheNewestEndOfFullStacks) {
  std::vector<Branch> full(8, {1, 2});
  std::vector<Branch> cut(7, {1, 2});
  const auto marked = [&] {
    kernel_ = FakeKernel();
    kernel_.script.emplace_back([&](FakeKernel& kernel) {
      sample(kernel, 0, {100, ::getpid(), ::getpid()}, full);
      sample(kernel, 0, {200, ::getpid(), ::getpid()}, cut);
      full[0] = {5, 6};
      sample(kernel, 0, {300, ::getpid(), ::getpid()}, full);
      full[0] = {1, 2};
    });
    EXPECT_TRUE(record().ok());
    Positions positions;
    const auto records = records_of(read().streams[0]);
    for (std::size_t i = 0; i < records.size(); ++i) {
      if ((records[i].flags & trace::RECORD_MAY_REPEAT) != 0) positions.push_back(i);
    }
    return positions;
  };
  EXPECT_EQ(marked(), Positions{7});
  options_.branch_stack = "any_call";
  EXPECT_EQ(marked(), Positions{});
}

TEST_F(PerfLbr, SamplesByPeriodOrFrequency) {
  const auto attr = [&] {
    kernel_ = FakeKernel();
    kernel_.files["/proc/sys/kernel/perf_event_max_sample_rate"] = "3000";
    EXPECT_TRUE(record().ok());
    return kernel_.of_type(PERF_TYPE_HARDWARE).at(0)->attr;
  };
  const perf_event_attr defaults = attr();
  EXPECT_EQ(defaults.config, PERF_COUNT_HW_CPU_CYCLES);
  EXPECT_EQ(defaults.branch_sample_type, PERF_SAMPLE_BRANCH_ANY);
  EXPECT_EQ(defaults.freq, 1U);
  EXPECT_EQ(defaults.sample_freq, 3000U);  // the kernel allows no more
  EXPECT_EQ(defaults.exclude_kernel, 1U);
  for (const FakeKernel::Event* one : kernel_.of_type(PERF_TYPE_SOFTWARE))
    EXPECT_EQ(one->attr.sample_type & PERF_SAMPLE_BRANCH_STACK, 0U);
  options_.sample_frequency = 99;
  EXPECT_EQ(attr().sample_freq, 99U);
  options_.sample_frequency = 0;
  options_.sample_period = 5000;
  const perf_event_attr by_period = attr();
  EXPECT_EQ(by_period.freq, 0U);
  EXPECT_EQ(by_period.sample_period, 5000U);
}

// Branch stacks are in the ring of records: no AUX area is mapped.
TEST_F(PerfLbr, UsesBufferSizeForRecords) {
  options_.buffer = 100'000;
  ASSERT_TRUE(record().ok());
  EXPECT_EQ(kernel_.buffer(0).first.size(), kPerfPage + 128 * 1024);
  EXPECT_TRUE(kernel_.buffer(0).trace.empty());
  options_.buffer = 0;
  kernel_.map_error = [](std::uint64_t bytes, bool) { return bytes > 600'000 ? EPERM : 0; };
  const auto result = record();
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::BUFFERS_LIMIT_LOCKED, 256));
}

TEST_F(PerfLbr, SeparatesTriggersFromStacks) {
  kernel_.files["/sys/kernel/tracing/events/signal/signal_deliver/id"] = "250";
  options_.seconds = std::chrono::milliseconds(0);
  TriggerRequest trigger;
  trigger.event = TriggerRequest::Event::SIGNAL;
  trigger.signal = 10;
  options_.triggers = {trigger};
  kernel_.script.emplace_back([](FakeKernel& kernel) {
    sample(kernel, 0, {100, ::getpid(), ::getpid()}, {{1, 2}});
    for (std::size_t i = 0; i < kernel.events.size(); ++i) {
      if (kernel.events[i].attr.type == PERF_TYPE_TRACEPOINT && kernel.events[i].cpu == 0)
        kernel.fire(static_cast<int>(i));
    }
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(result.value().limited);
  EXPECT_EQ(branches_of(read().streams[0]), (std::vector<Branch>{{1, 2}}));
}

// P cores are CPU 0, E cores CPU 1. As in the kernel, cycles without a PMU type are cycles of P cores.
void make_hybrid(FakeKernel& kernel) {
  const std::string folder = "/sys/bus/event_source/devices/cpu_";
  kernel.files[folder + "core/type"] = "4";
  kernel.files[folder + "core/cpus"] = "0";
  kernel.files[folder + "atom/type"] = "10";
  kernel.files[folder + "atom/cpus"] = "1";
  kernel.open_error = [](const perf_event_attr& attr, int, int cpu) {
    if (attr.type != PERF_TYPE_HARDWARE || cpu < 0) return 0;
    return (attr.config >> 32U == 10) == (cpu == 1) ? 0 : ENOENT;
  };
}

TEST_F(PerfLbr, OpensEventsOfEachCoreType) {
  make_hybrid(kernel_);
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const auto events = kernel_.of_type(PERF_TYPE_HARDWARE);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]->attr.config, std::uint64_t{4} << 32U);
  EXPECT_EQ(events[1]->attr.config, std::uint64_t{10} << 32U);
  FakePerf port(kernel_);
  kernel_.files["/sys/devices/system/cpu/online"] = "1";  // an E core
  EXPECT_EQ(lbr_support(port).abilities, "the kernel and whole processors, too");
}

TEST_F(PerfLbr, SharesBufferOfThreadAcrossCoreTypes) {
  make_hybrid(kernel_);
  options_.per_thread = true;
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const auto events = kernel_.of_type(PERF_TYPE_HARDWARE);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]->attr.config, std::uint64_t{4} << 32U);
  EXPECT_EQ(events[1]->attr.config, std::uint64_t{10} << 32U);
  EXPECT_EQ(events[0]->output, -1);
  EXPECT_EQ(events[1]->output, 0);
  EXPECT_EQ(kernel_.of_type(PERF_TYPE_SOFTWARE).size(), 1U);  // records come once
}

TEST_F(PerfLbr, RejectsInvalidOptions) {
  const auto said = [&](const char* words) { return refused().find(words) != std::string::npos; };
  options_.branch_stack = "any,nothing";
  EXPECT_TRUE(said("branch_stack: expected any of any, any_call, any_ret,")) << refused();
  EXPECT_TRUE(said("found 'nothing'"));
  options_.branch_stack = "any,";
  EXPECT_TRUE(said("found ''"));
  options_.branch_stack = "any";
  options_.ring = 4096;
  EXPECT_TRUE(said("ring: branch stacks are samples"));
  options_.ring = 0;
  options_.sample_period = options_.sample_frequency = 5;
  EXPECT_TRUE(said("expected one of both"));
  options_.sample_period = 0;
  kernel_.open_error = [](const perf_event_attr&, int, int) { return EOPNOTSUPP; };
  EXPECT_TRUE(said("this processor has no branch stacks (LBR) that Linux knows (caps/branches); record"));
  kernel_.files["/proc/cpuinfo"] = "flags\t: fpu hypervisor";
  EXPECT_TRUE(said("this is a virtual machine, and its hypervisor hides them; give the guest"));
  kernel_.open_error = [](const perf_event_attr&, int, int) { return EINVAL; };
  EXPECT_TRUE(said("branch_stack, sample_period, sample_frequency: the kernel refuses"));
  kernel_.open_error = [](const perf_event_attr&, int, int) { return EBUSY; };
  EXPECT_TRUE(said("branch stacks (LBR) are excluded by what else is recorded (intel_bts or intel_pt)"));
}

TEST_F(PerfLbr, ReportsSupport) {
  kernel_.files["/sys/bus/event_source/devices/cpu/caps/branches"] = "32";
  FakePerf port(kernel_);
  EXPECT_EQ(lbr_support(port).abilities, "32 branches a sample; the kernel and whole processors, too");
  EXPECT_EQ(bts_support(port).abilities, "the kernel and whole processors, too");
  kernel_.open_error = [](const perf_event_attr&, int tid, int) { return tid == -1 ? EACCES : 0; };
  EXPECT_EQ(bts_support(port).abilities, "user and kernel code of own processes only");
  kernel_.open_error = [](const perf_event_attr& attr, int, int) {
    return attr.exclude_kernel != 0 ? 0 : EACCES;
  };
  EXPECT_EQ(bts_support(port).abilities, "user code of own processes only");
  kernel_.open_error = [](const perf_event_attr&, int, int cpu) { return cpu == 0 ? EBUSY : 0; };
  EXPECT_EQ(bts_support(port).abilities, "the kernel and whole processors, too");
  kernel_.open_error = [](const perf_event_attr&, int, int cpu) { return cpu >= 0 ? EBUSY : 0; };
  EXPECT_NE(
      bts_support(port).abilities.find("own processes only (whole processors: Branch Trace Store is in use"),
      std::string::npos)
      << bts_support(port).abilities;
  kernel_.open_error = [](const perf_event_attr&, int, int) { return ENOENT; };
  EXPECT_NE(lbr_support(port).error.what.find("no branch stacks"), std::string::npos);
  kernel_.files.erase(kBtsFile);
  EXPECT_NE(bts_support(port).error.what.find("no intel_bts"), std::string::npos);
}

}  // namespace
}  // namespace ptkit::capture::test
