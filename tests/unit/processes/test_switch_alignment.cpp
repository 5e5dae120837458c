// Alignment of switches with wrong times to their PIP packets.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "processes/switch_alignment.h"
#include "ptkit/rtit_regs.h"
#include "unit/support/traces/stream_maker.h"

namespace ptkit::processes {
namespace {

using Kind = packet::PacketKind;

constexpr std::uint64_t kHz = 50'000'000;
constexpr std::uint64_t kMaxSkew = kHz / 50'000;  // as max_switch_skew()
constexpr std::uint64_t kLong = 3 * kMaxSkew;
constexpr std::uint64_t kUserTables = 0x1000;
constexpr std::uint64_t kTick = 50;
constexpr std::uint64_t kKernelIp = 0xffffffff81000000;
constexpr std::uint64_t kUserIp = 0x401000;

struct Process {
  std::int64_t pid = 0;
  std::int64_t tid = 0;
  trace::SpaceId space = trace::kAnySpace;
  std::uint64_t tables = 0;
};

// Simulates a CPU with processes, its trace, and the records of a recorder.
class Processor {
 public:
  Process process(std::uint64_t tables) {
    Process one{.pid = 100 + next_pid_++, .tables = tables};
    one.tid = one.pid;
    new_space(one);
    return one;
  }
  // Another thread of a process.
  Process thread(const Process& of) {
    Process one = of;
    one.tid = 100 + next_pid_++;
    return one;
  }
  void begin(Process& one) {
    now_ = &one;
    record_switch(0);
    tables_ = one.tables;
    psb();
    enable_tracing();
  }
  // Runs kernel code for so many ticks.
  void work(std::uint64_t ticks) {
    for (std::uint64_t i = 0; i < ticks; i += kTick) {
      add(Kind::TNT_8, 1, 1);
      truth_.push_back({stream_.last, now_->tid, is_user_});
    }
  }
  // Runs user code with isolated page tables (PTI).
  void user(std::uint64_t ticks) {
    add(Kind::PIP, tables_ | kUserTables);
    add(Kind::TIP, kUserIp, kWholeIp);
    is_user_ = true;
    work(ticks);
    is_user_ = false;
    add(Kind::TIP, kKernelIp, kWholeIp);
    add(Kind::PIP, tables_);
  }
  // Switches to another thread. Its record is late by `late` ticks.
  void change(Process& to, std::int64_t late = 0) {
    now_ = &to;
    if (to.tables != tables_) load(to.tables);
    record_switch(late);
  }
  // Switches to the idle task, which keeps the page tables of the last thread.
  void idle(std::int64_t late = 0) {
    idle_.space = now_->space;
    now_ = &idle_;
    record_switch(late);
  }
  // Switches to another thread, with the SWITCH OUT record `before` ticks earlier and the SWITCH IN record
  // `after` ticks later.
  void change_slowly(Process& to, std::uint64_t before, std::uint64_t after) {
    switches_.push_back({.tsc = tsc_ - before, .pid = trace::kNoId, .tid = trace::kNoId});
    change(to, static_cast<std::int64_t>(after));
  }
  void disable_tracing() { add(Kind::TIP_PGD); }
  void enable_tracing() { add(Kind::TIP_PGE, kKernelIp, kWholeIp); }
  void change_while_off(Process& to, std::int64_t late = 0) {
    tsc_ += 4 * kTick;
    now_ = &to;
    tables_ = to.tables;
    record_switch(late);
    tsc_ += 4 * kTick;
  }
  void change_untraced(Process& to) {
    disable_tracing();
    change_while_off(to);
    enable_tracing();
  }
  void psb() { stream_.add(Kind::PSB).add(Kind::TSC, tsc_).add(Kind::PIP, tables_).add(Kind::PSBEND); }
  // exec(): writes CR3, and records EXEC later.
  void load(std::uint64_t tables) {
    now_->tables = tables_ = tables;
    add(Kind::PIP, tables);
  }
  void execute() {
    new_space(*now_);
    record_switch(0);
  }

  // Counts blocks that have the wrong thread.
  std::size_t wrong() {
    return wrong_steps([](const Step&) { return true; });
  }
  // Counts those of user code only.
  std::size_t wrong_user() {
    return wrong_steps([](const Step& one) { return one.is_user; });
  }

 private:
  static constexpr std::uint64_t kWholeIp = 6;  // IPBytes

  struct Step {
    std::uint64_t offset = 0;
    std::int64_t tid = 0;
    bool is_user = false;
  };

  template <typename Counts>
  std::size_t wrong_steps(const Counts& counts) {
    trace::TraceBundle bundle;
    bundle.configuration.rtit_ctl_known = true;
    bundle.configuration.rtit_ctl = std::uint64_t{1} << PT_CTL_OS;
    bundle.configuration.clock.perf_time_known = true;
    bundle.configuration.clock.tsc_hz = kHz;
    bundle.spaces = spaces_;
    const std::string bytes = stream_.text();
    trace::Stream& stream = bundle.streams.emplace_back();
    stream.data = trace::TraceBuffer::from_vector({bytes.begin(), bytes.end()});
    stream.switches = switches_;
    std::vector<bool> processes(spaces_.size(), true);
    processes[trace::kAnySpace] = false;
    EXPECT_TRUE(align_switches_to_pips(bundle, {.processes = processes}));
    EXPECT_TRUE(stream.switches_by_offset);
    std::size_t count = 0;
    auto next = stream.switches.begin();
    std::int64_t tid = trace::kNoId;
    for (const Step& one : truth_) {
      for (; next != stream.switches.end() && next->offset <= one.offset; ++next) tid = next->tid;
      if (tid != one.tid && counts(one)) ++count;
    }
    return count;
  }

  void add(Kind kind, std::uint64_t payload = 0, std::uint64_t payload2 = 0) {
    tsc_ += kTick;
    stream_.add(Kind::TSC, tsc_).add(kind, payload, payload2);
  }
  void new_space(Process& one) {
    one.space = static_cast<trace::SpaceId>(spaces_.size());
    spaces_.push_back({.pid = one.pid});
  }
  void record_switch(std::int64_t late) {
    trace::Switch one{.pid = now_->pid, .tid = now_->tid, .space = now_->space};
    one.tsc = tsc_ + static_cast<std::uint64_t>(late);
    if (!switches_.empty()) one.tsc = std::max(one.tsc, switches_.back().tsc + 1);
    switches_.push_back(one);
  }

  formats::test::StreamMaker stream_;
  std::uint64_t tsc_ = 1'000'000;
  std::int64_t next_pid_ = 0;
  Process* now_ = nullptr;
  Process idle_{};
  std::uint64_t tables_ = 0;  // CR3
  bool is_user_ = false;
  std::vector<trace::Space> spaces_{trace::Space{}};
  std::vector<trace::Switch> switches_;
  std::vector<Step> truth_;
};

constexpr std::int64_t kLate = kMaxSkew / 2;
constexpr std::int64_t kTicks = kTick;

class SwitchAlignmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    machine_.begin(a_);
    machine_.work(kLong);
    machine_.change(b_);
    machine_.work(kLong);
    machine_.change(a_);
    machine_.work(kLong);
  }
  Processor machine_;
  Process a_ = machine_.process(0x10000);
  Process b_ = machine_.process(0x20000);
};

TEST_F(SwitchAlignmentTest, PutsSwitchesAtPips) {
  for (const std::int64_t late : {kLate, -kLate}) {
    machine_.change(b_, late);
    machine_.work(kLong);
    machine_.change(a_, late);
    machine_.work(kLong);
  }
  EXPECT_EQ(machine_.wrong(), 0U);
}

// A process has its new page tables long before its EXEC record, and is switched out and in before that.
TEST_F(SwitchAlignmentTest, FindsPipBeforeLateExecRecord) {
  for (const std::int64_t late : {kLate, -kLate}) {
    machine_.change(b_, late);
    machine_.work(kLong);
    machine_.load(b_.tables + 0x10000);
    machine_.work(kLong);
    machine_.change(a_, late);
    machine_.work(kLong);
    machine_.change(b_, late);
    machine_.work(kLong);
    machine_.execute();
    machine_.work(4 * kLong);
    machine_.change(a_, late);
    machine_.work(kLong);
  }
  EXPECT_EQ(machine_.wrong(), 0U);
}

// The EXEC record comes right after the PIP of the switch in: the process has its new page tables already.
TEST_F(SwitchAlignmentTest, IgnoresPipOfEarlyExecRecord) {
  machine_.change(b_);
  machine_.work(kLong);
  machine_.load(0x30000);
  machine_.work(kLong);
  machine_.change(a_);
  machine_.work(kLong);
  machine_.change(b_);
  machine_.work(kTick);
  machine_.execute();
  machine_.work(kMaxSkew / 4);
  machine_.change(a_);
  machine_.work(kMaxSkew / 4);
  machine_.change(b_);
  machine_.work(4 * kLong);
  machine_.change(a_);
  machine_.work(kLong);
  EXPECT_EQ(machine_.wrong(), 0U);
}

// b is switched in while tracing is off, so no PIP reports its CR3. a has the same CR3 before and after that.
TEST_F(SwitchAlignmentTest, FindsResumeAfterUnreportedCr3) {
  for (const std::int64_t late : {kLate, -kLate}) {
    machine_.change_untraced(b_);
    machine_.work(kLong);
    machine_.change(a_, late);
    machine_.work(kLong);
  }
  EXPECT_EQ(machine_.wrong(), 0U);
}

// b is switched in while tracing is off. The PIP in PSB+ reports its CR3 later.
TEST_F(SwitchAlignmentTest, PutsUnreportedSwitchBeforePipInPsb) {
  machine_.change_untraced(b_);
  machine_.work(kMaxSkew / 2);
  machine_.psb();
  machine_.work(kLong);
  EXPECT_EQ(machine_.wrong(), 0U);
}

// a was switched in before tracing was on. Its kernel entry a little later is no switch.
TEST_F(SwitchAlignmentTest, IgnoresKernelEntry) {
  machine_.user(kLong);
  machine_.disable_tracing();
  machine_.change_while_off(b_);
  constexpr std::int64_t kLittle = 10 * kTick;
  machine_.change_while_off(a_, kLittle);
  machine_.enable_tracing();
  machine_.work(kMaxSkew * 3 / 4);
  machine_.load(a_.tables);
  machine_.work(kLong);
  EXPECT_LE(machine_.wrong(), static_cast<std::size_t>(kLittle) / kTick);
}

// c is a's child of vfork(): CR3 is not written when a continues. Later c has its own page tables.
TEST_F(SwitchAlignmentTest, IgnoresBorrowedPageTables) {
  Process c = machine_.process(a_.tables);
  const auto borrow = [&] {
    machine_.change(c);
    machine_.work(kTick);
    machine_.user(kTick);
    machine_.change(a_);
    machine_.work(kLong);
    machine_.user(kLong);
  };
  borrow();
  machine_.disable_tracing();
  machine_.change_while_off(c);
  machine_.enable_tracing();
  machine_.work(kLong);
  machine_.user(kTick);
  machine_.work(kMaxSkew / 2);
  machine_.change(a_);
  machine_.work(kLong);
  machine_.user(kLong);
  borrow();
  machine_.change(c);
  machine_.load(0x50000);
  machine_.work(2 * kLong);
  machine_.execute();
  machine_.work(kLong);
  machine_.change(a_);
  machine_.work(kLong);
  EXPECT_EQ(machine_.wrong(), 0U);
}

// An SMI or a hypervisor interrupts the CPU between the two records of a switch.
TEST_F(SwitchAlignmentTest, FindsPipBetweenDistantRecords) {
  for (const auto& [before, after] : {std::pair{kTick, 5 * kMaxSkew}, std::pair{kTick, 20 * kMaxSkew}}) {
    machine_.change_slowly(b_, before, after);
    machine_.work(10 * kLong);
    machine_.change_slowly(a_, before, after);
    machine_.work(10 * kLong);
  }
  EXPECT_EQ(machine_.wrong(), 0U);
}

// An exiting thread has freed its page tables, and runs with those of a. It has them for longer than a,
// between switches with late records.
TEST_F(SwitchAlignmentTest, IgnoresPageTablesOfExitingThread) {
  const auto take_turns = [&] {
    for (const std::int64_t late : {kLate, -kLate}) {
      machine_.change(b_, late);
      machine_.work(kLong);
      machine_.change(a_, late);
      machine_.work(kLong);
    }
  };
  take_turns();
  Process ending = b_;
  ending.tables = a_.tables;
  machine_.change(ending);
  machine_.work(30 * kLong);
  machine_.change(a_);
  machine_.work(kLong);
  take_turns();
  EXPECT_EQ(machine_.wrong(), 0U);
}

// User code right before the switch to the idle task, with a record that is early.
TEST_F(SwitchAlignmentTest, GivesNoUserCodeBeforeIdleTaskToIdleTask) {
  for (const std::int64_t early : {3 * kTicks, kLate}) {
    machine_.user(kLong);
    machine_.work(kTick);
    machine_.user(4 * kTick);
    machine_.work(kTick);
    machine_.idle(-early);
    machine_.work(kLong);
    machine_.change(b_);
    machine_.user(kLong);
    machine_.change(a_);
    machine_.work(kLong);
  }
  EXPECT_EQ(machine_.wrong_user(), 0U);
}

// The same thread, or another one with the same page tables, runs user code before the record of its switch.
TEST_F(SwitchAlignmentTest, GivesNoUserCodeAfterIdleTaskToIdleTask) {
  Process other = machine_.thread(a_);
  for (Process* const next : {&a_, &other, &a_}) {
    machine_.user(kLong);
    machine_.idle();
    machine_.work(kLong);
    machine_.change(*next, kLate);
    machine_.work(kTick);
    machine_.user(2 * kTick);
    machine_.work(kTick);
    machine_.user(kLong);
    machine_.work(kLong);
  }
  EXPECT_EQ(machine_.wrong_user(), 0U);
}

// A process of another PID namespace looks like the idle task. Its user code is not given to its neighbours.
TEST_F(SwitchAlignmentTest, LeavesUserCodeThatIsFarFromSwitchesToIdleTask) {
  constexpr std::uint64_t kSteps = 40;
  machine_.idle();
  machine_.work(2 * kLong);
  machine_.user(kSteps * kTick);
  machine_.work(2 * kLong);
  machine_.change(b_);
  machine_.work(kLong);
  EXPECT_EQ(machine_.wrong_user(), 0U);
}

// Threads of one process: no PIP gives their switch.
TEST_F(SwitchAlignmentTest, PutsSwitchByTimeIntoKernelCode) {
  Process other = machine_.thread(a_);
  for (const std::int64_t late : {5 * kTicks, -5 * kTicks}) {
    for (Process* const next : {&other, &a_}) {
      machine_.user(10 * kTick);
      machine_.work(kTick);
      machine_.change(*next, late);
      machine_.work(kTick);
      machine_.user(10 * kTick);
      machine_.work(kLong);
    }
  }
  EXPECT_EQ(machine_.wrong_user(), 0U);
}

// No PIP changes the process, so that all switches are by time.
TEST(SwitchAlignment, GivesNoUserCodeOfOnlyProcessToIdleTask) {
  Processor machine;
  Process a = machine.process(0x10000);
  machine.begin(a);
  machine.user(kLong);
  machine.work(kTick);
  machine.idle(-4 * kTicks);
  machine.work(kLong);
  machine.change(a);
  machine.work(kLong);
  EXPECT_EQ(machine.wrong_user(), 0U);
}

TEST(RandomSwitchAlignment, GivesUserCodeToItsThread) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Processor machine;
    std::vector<Process> all;
    for (std::uint64_t i = 1; i <= 2; ++i) all.push_back(machine.process(i * 0x10000));
    for (std::size_t i = 0; i < 2; ++i) all.push_back(machine.thread(all[i]));
    std::size_t now = 0;
    machine.begin(all[now]);
    const auto late = [&] { return static_cast<std::int64_t>(random() % kMaxSkew) - kLate; };
    for (int i = 0; i < 100; ++i) {
      machine.work(kTick);
      for (std::uint64_t parts = 1 + random() % 3; parts != 0; --parts) {
        machine.user(kTick + random() % kLong);
        machine.work(kTick);
      }
      machine.user(kMaxSkew);
      machine.work(kTick);
      machine.idle(late());
      machine.work(kLong + random() % kLong);
      now = random() % all.size();
      machine.change(all[now], late());
      machine.work(kTick);
      machine.user(kMaxSkew);
    }
    EXPECT_EQ(machine.wrong_user(), 0U);
  }
}

TEST(RandomSwitchAlignment, IsCorrect) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    Processor machine;
    std::vector<Process> all;
    std::uint64_t tables = 0;
    for (int i = 0; i < 3; ++i) all.push_back(machine.process(tables += 0x10000));
    std::size_t now = 0;
    machine.begin(all[now]);
    const auto stay = [&] {
      machine.work(kLong + random() % kLong);
      if (random() % 2 == 0) machine.user(kLong);
      machine.work(kLong);
    };
    const auto change = [&](bool untraced) {
      now = (now + 1 + random() % 2) % all.size();
      if (untraced) return machine.change_untraced(all[now]);
      machine.change(all[now], static_cast<std::int64_t>(random() % kMaxSkew) - kLate);
    };
    stay();
    for (int i = 0; i < 70; ++i) {
      // A process that is switched in while tracing is off leaves no packets, and was seen before.
      const bool untraced = i > 10 && random() % 4 == 0;
      change(untraced);
      if (untraced) {
        machine.work(kLong);
        change(false);
      }
      stay();
      if (random() % 8 != 0) continue;
      const std::size_t one = now;
      machine.load(tables += 0x10000);
      machine.work(kLong);
      for (; now != one || random() % 2 == 0; stay()) change(false);
      machine.execute();
      stay();
    }
    EXPECT_EQ(machine.wrong(), 0U);
  }
}

}  // namespace
}  // namespace ptkit::processes
