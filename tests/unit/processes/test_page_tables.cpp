// perf.data with kernel code: PIP packets date context switches, not SWITCH records.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "flow/decoder/decoder.h"
#include "packet/decoder.h"
#include "processes/page_tables.h"
#include "processes/switch_alignment.h"
#include "unit/support/makers/perf_packed.h"
#include "unit/support/traces/perf_reading.h"
#include "unit/support/units/perf_machine.h"

namespace ptkit::processes {
namespace {

namespace test = formats::test;

using test::PerfMachine;
using test::Task;

// Collects instructions and the thread of each.
class Instructions final : public flow::FlowSink {
 public:
  void on_block(const flow::Block& block) override {
    std::uint64_t ip = block.ip;
    for (const flow::BlockInsn& insn : block.insns) {
      ips.push_back(ip);
      now_.push_back(context_);
      ip += insn.size;
    }
  }
  void on_context(const flow::Context& context) override { context_ = context; }
  void on_branch(const flow::Branch& /*branch*/) override {}
  void on_event(const flow::Event& /*event*/) override {}
  void on_error(const flow::FlowError& error) override { errors.push_back(error); }
  void on_gap(const flow::Gap& /*gap*/) override {}

  [[nodiscard]] const flow::Context& context(std::size_t i) const { return now_[i]; }
  std::vector<std::uint64_t> ips;
  std::vector<flow::FlowError> errors;

 private:
  flow::Context context_;
  std::vector<flow::Context> now_;
};

class PerfPageTables : public test::PerfReading {
 protected:
  // COMM and MMAP2 records of a task.
  void map(PerfMachine& machine, const Task& task) {
    const std::string name = "code" + std::to_string(task.nops);
    const std::string path = scratch_.write(name, PerfMachine::user_code(task.nops));
    machine.add(test::comm(machine.id_of(task), name, true));
    machine.add(test::mmap2(machine.id_of(task), PerfMachine::kUser, 0x1000, 0, path));
  }

  // exec(): another program with its own page tables.
  void execute(PerfMachine& machine, Task& task, std::uint64_t cr3) {
    task.cr3 = cr3;
    machine.load(cr3);
    machine.spin(5);
    task.nops = 7;
    task.resume = 0;
    map(machine, task);
    machine.spin(5);
    machine.leave();
  }

  trace::TraceBundle opened(PerfMachine& machine) { return opened(machine.file()); }
  trace::TraceBundle opened(const std::string& file) {
    trace::TraceBundle bundle = read(file);
    trace::CodeRegion kernel;
    const std::string code = PerfMachine::kernel_code();
    kernel.address = PerfMachine::kKernel;
    kernel.size = code.size();
    kernel.bytes = trace::TraceBuffer::from_vector({code.begin(), code.end()});
    bundle.code.push_back(kernel);
    return bundle;
  }

  static Instructions decode(trace::TraceBundle bundle) {
    Instructions out;
    const auto shared = std::make_shared<trace::TraceBundle>(std::move(bundle));
    const code::image::Image image(shared);
    const trace::Stream& stream = shared->streams.at(0);
    time::TimeTrack track(stream.data.bytes(), shared->configuration.clock,
                          packet::errata_for(shared->configuration.cpu));
    flow::FlowDecoder decoder(stream, shared->configuration, image, {}, out, &track);
    while (decoder.run()) {
    }
    return out;
  }

  // Checks the thread of every user instruction.
  static void expect_all(const PerfMachine& machine, const Instructions& found) {
    EXPECT_TRUE(found.errors.empty())
        << found.errors.size() << " errors, the first: " << base::status_name(found.errors[0].code);
    ASSERT_EQ(found.ips.size(), machine.ips.size());
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < machine.ips.size(); ++i) {
      ASSERT_EQ(found.ips[i], machine.ips[i]) << i;
      if (machine.pids[i] != 0 && found.context(i).pid != machine.pids[i]) ++wrong;
    }
    EXPECT_EQ(wrong, 0U) << "of " << machine.ips.size();
  }
};

struct Case {
  const char* name;
  PerfMachine::Options options;
  unsigned longest = 60;  // microseconds without a system call
};

class PerfSwitches : public PerfPageTables, public ::testing::WithParamInterface<Case> {};

// Two processes on one CPU, with the same addresses.
TEST_P(PerfSwitches, AreAlignedToPips) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    PerfMachine machine(GetParam().options, seed);
    std::mt19937_64 random(seed);
    Task a{.pid = 10, .tid = 10, .cr3 = 0x10000, .nops = 3};
    Task b{.pid = 20, .tid = 20, .cr3 = 0x20000, .nops = 5};
    map(machine, a);
    map(machine, b);
    machine.start(a);
    Task* now = &a;
    for (int i = 0; i < 300; ++i) {
      machine.run(2 + random() % GetParam().longest);
      if (random() % 2 != 0) {
        now = now == &a ? &b : &a;
        machine.change(*now);
      }
      machine.leave();
    }
    const trace::TraceBundle bundle = opened(machine);
    EXPECT_TRUE(bundle.streams.at(0).switches_by_offset || GetParam().options.traces_tasks);
    expect_all(machine, decode(bundle));
  }
}

constexpr std::uint64_t kUs = PerfMachine::kTicksPerUs;
INSTANTIATE_TEST_SUITE_P(
    Records, PerfSwitches,
    ::testing::Values(
        Case{"InTime", {}}, Case{"OfTasks", {.traces_tasks = true}}, Case{"EarlyOrLate", {.jitter = 6 * kUs}},
        Case{"WithIsolation", {.isolation = true, .jitter = 6 * kUs}},
        Case{"WithoutMtc", {.mtc = false, .jitter = 2 * kUs}, 600},
        Case{"WithoutMtcWithIsolation", {.isolation = true, .mtc = false, .jitter = 2 * kUs}, 600},
        Case{"OfWhoComesIn", {.jitter = 6 * kUs, .records_switch_out = false}}),
    [](const auto& one) { return std::string(one.param.name); });

TEST_F(PerfPageTables, ExecChangesPageTables) {
  PerfMachine machine({.isolation = true, .jitter = 4 * kUs}, 1);
  Task a{.pid = 10, .tid = 10, .cr3 = 0x10000, .nops = 3};
  Task b{.pid = 20, .tid = 20, .cr3 = 0x20000, .nops = 5};
  map(machine, a);
  map(machine, b);
  machine.start(a);
  for (int i = 0; i < 40; ++i) {
    machine.run(30);
    machine.change(b);
    machine.leave();
    machine.run(30);
    if (i == 20) {
      execute(machine, b, 0x30000);
      machine.run(30);
    }
    machine.change(a);
    machine.leave();
  }
  machine.run(5);
  expect_all(machine, decode(opened(machine)));
}

TEST_F(PerfPageTables, ThreadsShareAndKernelThreadsBorrow) {
  PerfMachine machine({.jitter = 4 * kUs}, 2);
  Task a{.pid = 10, .tid = 10, .cr3 = 0x10000, .nops = 3};
  Task second{.pid = 10, .tid = 11, .cr3 = 0x10000, .nops = 3};
  Task b{.pid = 20, .tid = 20, .cr3 = 0x20000, .nops = 5};
  Task kernel{.pid = 2, .tid = 2};
  map(machine, a);
  map(machine, b);
  machine.start(a);
  for (int i = 0; i < 60; ++i) {
    for (Task* const next : {&second, &b, &a}) {
      machine.run(40);
      if (i % 3 == 0) {
        machine.spin(10);
        machine.change(kernel);
        machine.spin(40);
      }
      machine.change(*next);
      machine.spin(10);
      machine.leave();
    }
  }
  machine.run(5);
  const trace::TraceBundle bundle = opened(machine);
  std::map<std::int64_t, int> seen;
  for (const trace::Switch& one : bundle.streams.at(0).switches) ++seen[one.tid];
  EXPECT_GE(seen[11], 60);
  EXPECT_GE(seen[2], 60);
  expect_all(machine, decode(bundle));
}

// Processes exit, and other processes reuse their page tables, repeatedly.
TEST_F(PerfPageTables, FreedPageTablesAreReused) {
  PerfMachine machine({.jitter = 4 * kUs}, 3);
  Task a{.pid = 10, .tid = 10, .cr3 = 0x10000, .nops = 3};
  map(machine, a);
  machine.start(a);
  std::vector<Task> children;
  for (std::uint32_t i = 0; i < 12; ++i)
    children.push_back({.pid = 30 + i, .tid = 30 + i, .cr3 = 0x20000, .nops = 4 + i});
  for (Task& child : children) {
    machine.run(60);
    machine.add(test::fork(machine.id_of(child), 10, 10));
    map(machine, child);
    machine.spin(20);
    for (int i = 0; i < 3; ++i) {
      machine.change(child);
      machine.leave();
      machine.run(60);
      machine.change(a);
      machine.leave();
      machine.run(60);
    }
    machine.spin(100);
    machine.leave();
  }
  machine.run(5);
  expect_all(machine, decode(opened(machine)));
}

TEST_F(PerfPageTables, ReplaceLostSwitchRecords) {
  PerfMachine machine({}, 4);
  Task a{.pid = 10, .tid = 10, .cr3 = 0x10000, .nops = 3};
  Task b{.pid = 20, .tid = 20, .cr3 = 0x20000, .nops = 5};
  map(machine, a);
  map(machine, b);
  machine.start(a);
  for (int i = 0; i < 60; ++i) {
    const bool recorded = i % 5 != 3;
    machine.run(100);
    machine.change(b, recorded);
    machine.leave();
    machine.run(100);
    machine.change(a, recorded);
    machine.leave();
  }
  machine.run(5);
  machine.add(test::event(2, 0, test::Bytes().add(std::uint64_t{1}, std::uint64_t{48}).str(), {}));
  expect_all(machine, decode(opened(machine)));
}

// After records that cannot be unpacked, no thread is running until a record names one.
TEST_F(PerfPageTables, HaveNoOwnerWithoutRecords) {
  PerfMachine machine({}, 4);
  Task a{.pid = 10, .tid = 10, .cr3 = 0x10000, .nops = 3};
  Task b{.pid = 20, .tid = 20, .cr3 = 0x20000, .nops = 5};
  map(machine, a);
  map(machine, b);
  machine.start(a);
  const auto go_on = [&] {
    for (Task* task : {&b, &a, &b, &a, &b}) {
      machine.run(100);
      machine.change(*task);
      machine.leave();
    }
    machine.run(5);
    return machine.take_records();
  };
  const std::string first = go_on();
  const std::size_t known = machine.ips.size();
  const std::string second = go_on();
  std::string records = test::packed(first + second, first.size());
  const std::size_t changed = test::packed(first, first.size()).size() + 8;
  records[changed] = static_cast<char>(records[changed] | 6);  // an invalid zstd block type
  const trace::TraceBundle bundle = opened(machine.file(records));
  EXPECT_TRUE(trace::warns(bundle, trace::WarningCode::COMPRESSED_DAMAGED));
  const Instructions found = decode(bundle);
  std::size_t right = 0;
  for (std::size_t i = 0; i < found.ips.size(); ++i) {
    if (found.ips[i] >= PerfMachine::kKernel || found.context(i).pid == trace::kNoId) continue;
    ASSERT_LT(i, known);
    ASSERT_EQ(found.context(i).pid, machine.pids[i]) << i;
    ++right;
  }
  EXPECT_GT(right, 1000U);
  ASSERT_FALSE(bundle.streams[0].switches.empty());
  EXPECT_EQ(bundle.streams[0].switches.back().tid, trace::kNoId);
}

// A child of vfork() runs with its parent's page tables until exec().
TEST_F(PerfPageTables, VforkChildrenBorrowUntilExec) {
  PerfMachine machine({.jitter = 4 * kUs}, 5);
  Task a{.pid = 10, .tid = 10, .cr3 = 0x10000, .nops = 3};
  Task b{.pid = 20, .tid = 20, .cr3 = 0x20000, .nops = 5};
  map(machine, a);
  map(machine, b);
  machine.start(a);
  for (std::uint32_t i = 0; i < 20; ++i) {
    Task child{.pid = 30 + i, .tid = 30 + i, .cr3 = 0x10000, .nops = 3};
    const auto go_on_with = [&](Task& next) {
      machine.run(60);
      machine.change(next);
      machine.leave();
    };
    go_on_with(b);
    go_on_with(a);
    machine.run(60);
    machine.add(test::fork(machine.id_of(child), 10, 10));
    machine.spin(20);
    machine.change(child);
    machine.spin(10);
    machine.leave();
    go_on_with(b);
    go_on_with(child);
    machine.run(60);
    execute(machine, child, 0x30000 + i * 0x1000);
    go_on_with(b);
    go_on_with(child);
    go_on_with(a);
  }
  machine.run(60);
  expect_all(machine, decode(opened(machine)));
}

// ---- surveys in windows

// The same stream with so many PADs before some PSBs that each of these begins a window.
std::string stretched(base::Bytes stream, std::vector<std::uint64_t>& added) {
  constexpr std::size_t kPadding = std::size_t{20} << 20U;
  std::string out;
  std::uint64_t begin = 0;
  int number = 0;
  for (std::uint64_t psb = packet::find_psb(stream, 1);; psb = packet::find_psb(stream, begin + 1)) {
    added.resize(psb, out.size() - begin);
    out.append(stream.begin() + static_cast<std::ptrdiff_t>(begin),
               stream.begin() + static_cast<std::ptrdiff_t>(psb));
    if (psb == stream.size()) return out;
    if (++number % 4 == 1 && number < 12) out.append(kPadding, 0);
    begin = psb;
  }
}

TEST_F(PerfPageTables, AreSurveyedInWindows) {
  PerfMachine machine({.isolation = true, .jitter = 4 * kUs}, 6);
  Task a{.pid = 10, .tid = 10, .cr3 = 0x10000, .nops = 3};
  Task b{.pid = 20, .tid = 20, .cr3 = 0x20000, .nops = 5};
  map(machine, a);
  map(machine, b);
  machine.start(a);
  for (int i = 0; i < 600; ++i) {
    machine.run(60);
    machine.change(i % 2 == 0 ? b : a);
    machine.leave();
  }
  trace::TraceBundle whole = read(machine.file());
  const std::vector<trace::Switch> expected = whole.streams.at(0).switches;
  std::vector<std::uint64_t> added;
  const std::string longer = stretched(whole.streams[0].data.bytes(), added);
  ASSERT_GT(longer.size(), std::size_t{50} << 20U);
  std::vector<trace::Switch> by_time = expected;
  for (trace::Switch& one : by_time) one.offset = 0;
  whole.streams[0].switches = by_time;
  whole.streams[0].switches_by_offset = false;
  whole.streams[0].data = trace::TraceBuffer::from_vector({longer.begin(), longer.end()});
  int asked = 0;
  const SwitchAlignment options{.processes = spaces_with_code(whole), .go_on = [&] { return ++asked < 3; }};
  EXPECT_FALSE(align_switches_to_pips(whole, options));
  EXPECT_FALSE(whole.streams[0].switches_by_offset);
  ASSERT_TRUE(align_switches_to_pips(whole, {.processes = spaces_with_code(whole)}));
  ASSERT_TRUE(whole.streams[0].switches_by_offset);
  const std::vector<trace::Switch>& found = whole.streams[0].switches;
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].space, expected[i].space) << i;
    const std::uint64_t at = expected[i].offset - 1;  // of the packet
    EXPECT_EQ(found[i].offset, at + added.at(at) + 1) << i;
  }
}

// ---- PageTables

constexpr std::uint64_t kMaxSkew = 20;

Cr3Change change_to(std::uint64_t cr3, std::uint64_t tsc) {
  return {.cr3 = cr3, .tsc = tsc, .estimate = tsc};
}

TEST(PageTables, BelongToSpaceWithLongestUse) {
  PageTables tables(std::vector<bool>{false, true, true, false}, kMaxSkew);
  // Space 1 owns CR3 7 up to 1000, space 2 from 1000 on. Switch records are late by 10. Space 3 borrows.
  tables.learn(
      {change_to(7, 0), change_to(8, 300), change_to(7, 400), change_to(7, 1000), change_to(0, 2000)},
      {{.tsc = 0, .space = 1},
       {.tsc = 310, .space = 2},
       {.tsc = 410, .space = 1},
       {.tsc = 600, .space = 3},
       {.tsc = 700, .space = 1},
       {.tsc = 1010, .space = 2}});
  tables.resolve_owners();
  EXPECT_EQ(tables.owner(7, 350), 1U);
  EXPECT_EQ(tables.owner(7, 650), 1U);
  EXPECT_EQ(tables.owner(7, 1500), 2U);
  EXPECT_EQ(tables.owner(8, 350), 2U);
  EXPECT_EQ(tables.owner(9, 350), trace::kAnySpace);
  EXPECT_TRUE(tables.has_tables(1));
  EXPECT_FALSE(tables.has_tables(3));
}

// Space 2 is switched in a last time, after its page tables were freed, and runs for long.
TEST(PageTables, DoNotBelongToExitingThread) {
  PageTables tables(std::vector<bool>{false, true, true}, kMaxSkew);
  tables.learn({change_to(7, 0), change_to(8, 300), change_to(7, 400), change_to(0, 2000)},
               {{.tsc = 0, .tid = 10, .space = 1},
                {.tsc = 290, .tid = 20, .space = 2},
                {.tsc = 410, .tid = 10, .space = 1},
                {.tsc = 600, .tid = 20, .space = 2},
                {.tsc = 1700, .tid = trace::kNoId, .space = 2},  // idle
                {.tsc = 1900, .tid = 10, .space = 1}});
  tables.resolve_owners();
  for (const std::uint64_t tsc : {100U, 500U, 1000U, 1800U}) EXPECT_EQ(tables.owner(7, tsc), 1U) << tsc;
  EXPECT_EQ(tables.owner(8, 350), 2U);
}

// The switch record is so late that the page tables seem older than the switch. The next page tables
// certainly belong to the space.
TEST(PageTables, BelongToThreadWithLateRecord) {
  PageTables tables(std::vector<bool>{false, true, true}, kMaxSkew);
  tables.learn({change_to(7, 0), change_to(8, 300), change_to(9, 400), change_to(8, 500), change_to(0, 2000)},
               {{.tsc = 0, .tid = 10, .space = 1}, {.tsc = 350, .tid = 20, .space = 2}});
  tables.resolve_owners();
  EXPECT_EQ(tables.owner(8, 1000), 2U);
  EXPECT_EQ(tables.owner(9, 450), 2U);
}

// exec() is recorded long after the write to CR3.
TEST(PageTables, BelongToProgramAfterExec) {
  PageTables tables(std::vector<bool>{false, true, true}, kMaxSkew);
  tables.learn({change_to(7, 0), change_to(8, 300), change_to(0, 2000)},
               {{.tsc = 0, .tid = 10, .space = 1}, {.tsc = 500, .tid = 10, .space = 2}});
  tables.resolve_owners();
  EXPECT_EQ(tables.owner(8, 1000), 2U);
}

TEST(PageTables, HaveNoOwnerIfNeverSeen) {
  PageTables tables(std::vector<bool>{false, true}, kMaxSkew);
  tables.learn({}, {{.tsc = 0, .space = 1}});
  tables.learn({{.cr3 = 7}, {.tsc = 10, .estimate = 10}}, {});
  tables.resolve_owners();
  EXPECT_EQ(tables.owner(7, 5), trace::kAnySpace);
  EXPECT_FALSE(tables.has_tables(1));
}

}  // namespace
}  // namespace ptkit::processes
