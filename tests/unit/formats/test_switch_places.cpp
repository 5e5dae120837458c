// Switches that are told by time, too early or too late, get the places of the PIPs that belong to them.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "formats/switch_places.h"
#include "ptkit/rtit_regs.h"
#include "stream_maker.h"

namespace ptkit::formats {
namespace {

using Kind = packet::PacketKind;

constexpr std::uint64_t kHz = 50'000'000;
constexpr std::uint64_t kDoubt = kHz / 50'000;  // what a recorder may be wrong by
constexpr std::uint64_t kLong = 3 * kDoubt;
constexpr std::uint64_t kUserTables = 0x1000;
constexpr std::uint64_t kTick = 50;

struct Process {
  std::int64_t pid = 0;
  trace::SpaceId space = trace::kAnySpace;
  std::uint64_t tables = 0;
};

// A processor that runs processes, its trace, and what a recorder tells of it.
class Processor {
 public:
  Process process(std::uint64_t tables) {
    Process one{.pid = 100 + next_pid_++, .tables = tables};
    new_space(one);
    return one;
  }
  void begin(Process& one) {
    now_ = &one;
    tell(0);
    stream_.add(Kind::PSB).add(Kind::TSC, tsc_).add(Kind::PIP, one.tables).add(Kind::PSBEND);
    add(Kind::TIP_PGE, 0, 6);
  }
  // Kernel code for so long.
  void work(std::uint64_t ticks) {
    for (std::uint64_t i = 0; i < ticks; i += kTick) {
      add(Kind::TNT_8, 1, 1);
      truth_.push_back({stream_.last, now_->pid});
    }
  }
  // User code, where page tables are isolated.
  void user(std::uint64_t ticks) {
    add(Kind::PIP, now_->tables | kUserTables);
    work(ticks);
    add(Kind::PIP, now_->tables);
  }
  // Somebody else comes, which is told so much too late.
  void change(Process& to, std::int64_t late = 0) {
    const std::uint64_t before = now_->tables;
    now_ = &to;
    if (to.tables != before) add(Kind::PIP, to.tables);
    tell(late);
  }
  // The same, with the record of the one that goes so much before and the record of the one that comes so
  // much after.
  void change_slowly(Process& to, std::uint64_t before, std::uint64_t after) {
    switches_.push_back({.tsc = tsc_ - before, .pid = trace::kNoId, .tid = trace::kNoId});
    change(to, static_cast<std::int64_t>(after));
  }
  void go_off() { add(Kind::TIP_PGD); }
  void come_on() { add(Kind::TIP_PGE, 0, 6); }
  void change_while_off(Process& to, std::int64_t late = 0) {
    tsc_ += 4 * kTick;
    now_ = &to;
    tell(late);
    tsc_ += 4 * kTick;
  }
  void change_untraced(Process& to) {
    go_off();
    change_while_off(to);
    come_on();
  }
  // exec(): new tables, and later that it is told.
  void load(std::uint64_t tables) {
    now_->tables = tables;
    add(Kind::PIP, tables);
  }
  void execute() {
    new_space(*now_);
    tell(0);
  }

  // How often somebody is said to run who does not.
  std::size_t wrong() {
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
    EXPECT_TRUE(place_switches(bundle, {.processes = processes}));
    EXPECT_TRUE(stream.switches_by_offset);
    std::size_t count = 0;
    auto next = stream.switches.begin();
    std::int64_t pid = trace::kNoId;
    for (const auto& [offset, runs] : truth_) {
      for (; next != stream.switches.end() && next->offset <= offset; ++next) pid = next->pid;
      if (pid != runs) ++count;
    }
    return count;
  }

 private:
  struct Step {
    std::uint64_t offset = 0;
    std::int64_t pid = 0;
  };

  void add(Kind kind, std::uint64_t payload = 0, std::uint64_t payload2 = 0) {
    tsc_ += kTick;
    stream_.add(Kind::TSC, tsc_).add(kind, payload, payload2);
  }
  void new_space(Process& one) {
    one.space = static_cast<trace::SpaceId>(spaces_.size());
    spaces_.push_back({.pid = one.pid});
  }
  void tell(std::int64_t late) {
    trace::Switch one{.pid = now_->pid, .tid = now_->pid, .space = now_->space};
    one.tsc = tsc_ + static_cast<std::uint64_t>(late);
    if (!switches_.empty()) one.tsc = std::max(one.tsc, switches_.back().tsc + 1);
    switches_.push_back(one);
  }

  test::StreamMaker stream_;
  std::uint64_t tsc_ = 1'000'000;
  std::int64_t next_pid_ = 0;
  Process* now_ = nullptr;
  std::vector<trace::Space> spaces_{trace::Space{}};
  std::vector<trace::Switch> switches_;
  std::vector<Step> truth_;
};

constexpr std::int64_t kLate = kDoubt / 2;

class SwitchPlaces : public ::testing::Test {
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

TEST_F(SwitchPlaces, AreThoseOfPips) {
  for (const std::int64_t late : {kLate, -kLate}) {
    machine_.change(b_, late);
    machine_.work(kLong);
    machine_.change(a_, late);
    machine_.work(kLong);
  }
  EXPECT_EQ(machine_.wrong(), 0U);
}

// A process' new tables are in force long before its exec() is told. It goes and comes back meanwhile.
TEST_F(SwitchPlaces, AreThoseOfTablesWhoseExecIsToldLater) {
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

// Right behind the PIP with which it came back: the process has its new tables, and needs no others.
TEST_F(SwitchPlaces, AreNotThoseOfAnExecThatIsToldSoon) {
  machine_.change(b_);
  machine_.work(kLong);
  machine_.load(0x30000);
  machine_.work(kLong);
  machine_.change(a_);
  machine_.work(kLong);
  machine_.change(b_);
  machine_.work(kTick);
  machine_.execute();
  machine_.work(kDoubt / 4);
  machine_.change(a_);
  machine_.work(kDoubt / 4);
  machine_.change(b_);
  machine_.work(4 * kLong);
  machine_.change(a_);
  machine_.work(kLong);
  EXPECT_EQ(machine_.wrong(), 0U);
}

// b comes while tracing is off, so that nothing tells of its tables. a's are the same before and behind.
TEST_F(SwitchPlaces, AreThoseOfTablesThatComeBackBehindUnknownOnes) {
  for (const std::int64_t late : {kLate, -kLate}) {
    machine_.change_untraced(b_);
    machine_.work(kLong);
    machine_.change(a_, late);
    machine_.work(kLong);
  }
  EXPECT_EQ(machine_.wrong(), 0U);
}

// a has been back before tracing was on. It comes from user code to the kernel a little later: that is no
// switch.
TEST_F(SwitchPlaces, AreNotWhereTheKernelIsEntered) {
  machine_.user(kLong);
  machine_.go_off();
  machine_.change_while_off(b_);
  constexpr std::int64_t kLittle = 10 * kTick;
  machine_.change_while_off(a_, kLittle);
  machine_.come_on();
  machine_.work(kDoubt * 3 / 4);
  machine_.load(a_.tables);
  machine_.work(kLong);
  EXPECT_LE(machine_.wrong(), static_cast<std::size_t>(kLittle) / kTick);
}

// c is a's child of vfork(): CR3 stays as it is when a goes on. Later it has tables of its own.
TEST_F(SwitchPlaces, AreNotThoseOfTablesThatAreBorrowed) {
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
  machine_.go_off();
  machine_.change_while_off(c);
  machine_.come_on();
  machine_.work(kLong);
  machine_.user(kTick);
  machine_.work(kDoubt / 2);
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

// Between the two records of a switch the processor is held up: by SMIs, by a hypervisor.
TEST_F(SwitchPlaces, AreBetweenTheRecordsOfTheThreadsThatGoAndCome) {
  for (const auto& [before, after] : {std::pair{kTick, 5 * kDoubt}, std::pair{kTick, 20 * kDoubt}}) {
    machine_.change_slowly(b_, before, after);
    machine_.work(10 * kLong);
    machine_.change_slowly(a_, before, after);
    machine_.work(10 * kLong);
  }
  EXPECT_EQ(machine_.wrong(), 0U);
}

// A thread that ends has given its tables back, and runs with those that are in force when it comes: a's. It
// has them for longer than a has, between switches whose records are late.
TEST_F(SwitchPlaces, AreNotThoseOfTablesThatAThreadHasWhenItEnds) {
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

TEST(RandomSwitchPlaces, AreRight) {
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
      machine.change(all[now], static_cast<std::int64_t>(random() % kDoubt) - kLate);
    };
    stay();
    for (int i = 0; i < 70; ++i) {
      // Who comes while tracing is off does nothing that tells of it, and was seen before.
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
}  // namespace ptkit::formats
