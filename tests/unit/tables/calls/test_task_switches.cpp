// The kernel's switches between threads, and the notes of them that stand near.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/addresses.h"
#include "ptkit/rtit_regs.h"
#include "tables/calls/task_switches.h"
#include "tables/columns/request.h"
#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

using flow::BranchKind;

constexpr std::uint64_t kEntry = base::kKernelHalf + 0x1000;     // of system calls and interrupts
constexpr std::uint64_t kSchedule = base::kKernelHalf + 0x2000;  // __schedule()
constexpr std::uint64_t kSwitch = base::kKernelHalf + 0x3000;    // __switch_to_asm()
constexpr std::uint64_t kSwitchTo = base::kKernelHalf + 0x4000;
constexpr std::uint64_t kBegin = base::kKernelHalf + 0x5000;  // ret_from_fork()
constexpr std::uint64_t kPerf = base::kKernelHalf + 0x6000;   // writes the notes of the recorder
constexpr std::uint64_t kWrite = base::kKernelHalf + 0x7000;  // switches packets off and on
constexpr std::uint64_t kDead = base::kKernelHalf + 0x7800;   // do_task_dead()
constexpr std::uint64_t kLoop = base::kKernelHalf + 0x1800;   // of the idle task
constexpr std::int64_t kIdle = 0;

// One processor: rows as of a stream of it.
class Processor final : public TaskSwitches::Taker {
 public:
  Processor() {
    code().flags[kSchedule] = CODE_SCHEDULER;
    code().flags[kSwitch] = code().flags[kSwitchTo] = CODE_TASK_SWITCH;
    code().flags[kBegin] = CODE_CLONE;
    code().flags[kDead] = CODE_TASK_END;
    note(1);
  }
  void give(const StreamRow& row) override {
    give_row(row, row.owner != owner_, program.machine);
    owner_ = row.owner;
  }
  // `insns` instructions, the branch included.
  void branch(BranchKind kind, std::uint64_t from, std::optional<std::uint64_t> to) {
    program.position.instructions += kInsns - 1;
    put(program.step_of(kind, from, to), static_cast<std::uint8_t>(kind));
    program.end_branch();
  }
  void mark(tables::columns::MarkKind kind, std::uint64_t ip = 0) {
    BranchStep step;
    step.to_ip = ip;
    if (ip != 0) step.flags = flow::TO_KNOWN;
    put(step, kind);
  }
  // The following rows are said to be of this thread.
  void note(std::int64_t tid, trace::SpaceId space = 7) {
    mark(tables::columns::MARK_LEAVE);
    noted_ = {0, tid == kIdle ? 0 : 100, tid, space};
    mark(tables::columns::MARK_CONTEXT);
  }
  void call(std::uint64_t from, std::uint64_t to) { branch(BranchKind::CALL, from, to); }
  void ret(std::uint64_t from, std::uint64_t to) { branch(BranchKind::RETURN, from, to); }
  void enter(std::uint64_t from) { branch(BranchKind::SYSCALL, from, kEntry); }
  void leave(std::uint64_t to) { branch(BranchKind::SYSRET, kEntry + 0xf0, to); }
  // __schedule() up to the return of __switch_to(), which goes to `to`.
  void schedule(std::uint64_t from, std::uint64_t to = kSchedule + 0x54) {
    call(from, kSchedule);
    call(kSchedule + 0x20, kPerf);
    ret(kPerf + 0x20, kSchedule + 0x24);
    switch_to(to);
  }
  void switch_to(std::uint64_t to = kSchedule + 0x54) {
    call(kSchedule + 0x50, kSwitch);
    call(kSwitch + 0x10, kSwitch + 0x18);  // fills the return stack buffer
    call(kSwitch + 0x20, kSwitch + 0x28);
    branch(BranchKind::JUMP, kSwitch + 0x30, kSwitchTo);
    ret(kSwitchTo + 0x30, to);
  }
  // The rest of __schedule(), with a note on the next thread's stack.
  void arrive(std::optional<std::int64_t> tid, std::uint64_t to) {
    call(kSchedule + 0x60, kPerf);
    if (tid) note(*tid);
    ret(kPerf + 0x30, kSchedule + 0x64);
    ret(kSchedule + 0x80, to);
  }
  void finish() {
    switches.finish();
    program.finish();
  }
  [[nodiscard]] GivenCode& code() { return program.code; }
  [[nodiscard]] const Frames& frames() const { return program.frames; }
  // All frames of these functions have returned, exact, and there was nothing that fits nothing.
  void expect_returns(std::initializer_list<std::uint64_t> entries) const {
    for (std::size_t i = 0; i < frames().frames.size(); ++i) {
      const Frame& frame = frames().frames[i];
      if (std::find(entries.begin(), entries.end(), frame.entry_ip) == entries.end()) continue;
      EXPECT_EQ(frame.end_how, CallEnd::RETURN) << std::hex << frame.entry_ip;
      EXPECT_NE(frame.flags & FRAME_EXACT, 0) << std::hex << frame.entry_ip;
    }
    EXPECT_TRUE(frames().anomalies.empty());
    EXPECT_EQ(program.self_sum(), program.position.instructions);
  }
  // Threads of frames with this entry, in the order in which they ended.
  [[nodiscard]] std::vector<std::int64_t> threads_of(std::uint64_t entry) const {
    std::vector<std::int64_t> threads;
    for (std::size_t i = 0; i < frames().frames.size(); ++i) {
      if (frames().frames[i].entry_ip == entry) threads.push_back(frames().owners[i].tid);
    }
    return threads;
  }

  Program program;
  TaskSwitches switches{program.machine, *this};

 private:
  static constexpr std::uint64_t kInsns = 10;

  void put(const BranchStep& step, std::uint8_t kind) {
    StreamRow row;
    row.step = step;
    row.step.position = program.position;
    row.before = program.position;
    row.owner = noted_;
    row.kind = kind;
    row.begins_run = kind == tables::columns::MARK_CONTEXT;
    switches.take(row);
  }

  Owner noted_;
  Owner owner_;
};

// Thread 1 sleeps in a system call, and the new thread 2 comes.
void begin_second(Processor& processor) {
  processor.enter(kMain + 0x10);
  processor.call(kEntry + 0x10, kSchedule);
  processor.call(kSchedule + 0x20, kPerf);
  processor.note(kIdle);
  processor.ret(kPerf + 0x20, kSchedule + 0x24);
  processor.switch_to(kBegin);
  processor.note(2);
  processor.leave(kG + 0x14);
}

TEST(TaskSwitches, StacksChangeWhereTheKernelSwitches) {
  Processor processor;
  begin_second(processor);
  processor.enter(kG + 0x20);
  processor.call(kEntry + 0x10, kSchedule);
  processor.note(kIdle);
  processor.switch_to();
  processor.arrive(1, kEntry + 0x14);
  processor.leave(kMain + 0x14);
  processor.finish();
  processor.expect_returns({kPerf});
  EXPECT_EQ(processor.threads_of(kPerf), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(processor.threads_of(kBegin), std::vector<std::int64_t>{2});
  const Frame& begins = processor.frames().of(kBegin);
  EXPECT_EQ(begins.how, CallKind::THREAD);
  EXPECT_EQ(begins.end_how, CallEnd::RETURN);
  // Of thread 1 all frames have returned, of thread 2 those below the switch are open.
  EXPECT_EQ(processor.threads_of(kSchedule), (std::vector<std::int64_t>{1, 2}));
  const Frame& waits = processor.frames().of(kSwitch);
  EXPECT_EQ(waits.end_how, CallEnd::END);
  EXPECT_EQ(processor.threads_of(kSwitch), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(processor.threads_of(kEntry), (std::vector<std::int64_t>{1, 2}));
}

// The PIP of the next process is before the switch.
TEST(TaskSwitches, NotesMayBeEarly) {
  Processor processor;
  begin_second(processor);
  processor.enter(kG + 0x20);
  processor.call(kEntry + 0x10, kSchedule);
  processor.note(1);
  processor.call(kSchedule + 0x20, kPerf);
  processor.ret(kPerf + 0x20, kSchedule + 0x24);
  processor.switch_to();
  processor.arrive({}, kEntry + 0x14);
  processor.leave(kMain + 0x14);
  processor.finish();
  processor.expect_returns({kPerf});
  EXPECT_EQ(processor.threads_of(kPerf), (std::vector<std::int64_t>{1, 2, 1}));
  EXPECT_EQ(processor.threads_of(kSchedule), (std::vector<std::int64_t>{1, 2}));
}

// Nobody notes the idle task: its next switch shows that it was executed.
TEST(TaskSwitches, IdleTaskHasAStackOfItsOwn) {
  Processor processor;
  processor.enter(kMain + 0x10);
  processor.call(kEntry + 0x10, kSchedule);
  processor.note(kIdle);
  processor.switch_to();
  processor.arrive({}, kLoop + 0x14);
  processor.schedule(kLoop + 0x10);
  processor.arrive(1, kEntry + 0x14);
  processor.leave(kMain + 0x14);
  processor.finish();
  processor.expect_returns({kPerf, kEntry});
  EXPECT_EQ(processor.threads_of(kPerf), (std::vector<std::int64_t>{0, 0, 1}));
  EXPECT_EQ(processor.threads_of(kSchedule), (std::vector<std::int64_t>{0, 1, 0}));
}

// A recording of one program: packets are off while others are executed. The notes of the others, and of
// thread 1 where it comes again, are in the stream before packets are enabled (`early`), or the latter
// behind.
void leave_and_come_again(Processor& processor, bool early) {
  processor.enter(kMain + 0x10);
  processor.call(kEntry + 0x10, kSchedule);
  processor.call(kSchedule + 0x20, kPerf);
  processor.note(kIdle);
  processor.call(kPerf + 0x20, kWrite);
  processor.mark(tables::columns::MARK_DISABLED);
  if (early) {
    processor.note(3);
    processor.note(1);
  }
  processor.mark(tables::columns::MARK_ENABLED, kWrite + 0x8);
  processor.ret(kWrite + 0x10, kPerf + 0x44);  // called from elsewhere
  processor.call(kPerf + 0x50, kWrite);
  if (!early) processor.note(1);
  processor.ret(kWrite + 0x10, kPerf + 0x54);
  processor.ret(kPerf + 0x60, kSchedule + 0x64);
  processor.ret(kSchedule + 0x80, kEntry + 0x14);
  processor.leave(kMain + 0x14);
  processor.finish();
}

class PacketsAreOff : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(TaskSwitches, PacketsAreOff, testing::Bool());

TEST_P(PacketsAreOff, DuringTheSwitch) {
  Processor processor;
  leave_and_come_again(processor, GetParam());
  processor.expect_returns({kSchedule, kEntry});
  EXPECT_EQ(processor.threads_of(kSchedule), std::vector<std::int64_t>{1});
  EXPECT_EQ(processor.threads_of(kPerf), (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(processor.frames().of(kPerf).parent, processor.frames().of(kSchedule).id);
  EXPECT_EQ(processor.frames().of(kPerf).how, CallKind::RESUMED);
}

TEST(TaskSwitches, ThreadsEndWhereTheyAreLeftForGood) {
  Processor processor;
  begin_second(processor);
  processor.enter(kG + 0x20);
  processor.call(kEntry + 0x10, kDead);
  processor.call(kDead + 0x10, kSchedule);
  processor.note(kIdle);
  processor.switch_to();
  const std::uint64_t left = processor.program.position.offset;
  processor.arrive(1, kEntry + 0x14);
  processor.leave(kMain + 0x14);
  processor.finish();
  const Frame& dead = processor.frames().of(kDead);
  EXPECT_EQ(dead.end_how, CallEnd::END);
  EXPECT_EQ(dead.end.offset + 2, left);
  processor.expect_returns({kPerf});
}

// The user code's frames end with the program, the kernel's go on.
TEST(TaskSwitches, SystemCallThatExecutesAnotherProgramReturns) {
  Processor processor;
  processor.call(kMain + 0x10, kF);
  processor.enter(kF + 0x10);
  processor.note(1, 8);
  processor.call(kEntry + 0x20, kPerf);
  processor.ret(kPerf + 0x20, kEntry + 0x24);
  processor.leave(kH);
  processor.call(kH + 0x10, kG);
  processor.ret(kG + 0x10, kH + 0x14);
  processor.finish();
  processor.expect_returns({kEntry, kPerf, kG});
  EXPECT_EQ(processor.frames().of(kF).end_how, CallEnd::END);
  EXPECT_EQ(processor.frames().of(kH).how, CallKind::ROOT);
  EXPECT_EQ(processor.frames().of(kPerf).parent, processor.frames().of(kEntry).id);
  for (std::size_t i = 0; i < processor.frames().frames.size(); ++i) {
    const std::uint64_t entry = processor.frames().frames[i].entry_ip;
    const trace::SpaceId space = processor.frames().owners[i].space;
    const bool is_old = entry == kF || entry == kMain;
    const bool is_new = entry == kG || entry == kH;
    if (is_old || is_new) {
      EXPECT_EQ(space, is_old ? 7U : 8U);
    }
  }
}

// Thread 1 comes to processor 1 at time 500.
trace::TraceBundle two_processors() {
  trace::TraceBundle bundle;
  bundle.configuration.rtit_ctl_known = true;
  bundle.configuration.rtit_ctl = std::uint64_t{1} << PT_CTL_OS;
  for (const std::int64_t cpu : {0, 1}) {
    trace::Stream& stream = bundle.streams.emplace_back();
    stream.cpu = cpu;
    trace::Switch& arrival = stream.switches.emplace_back();
    arrival.tid = 1;
    arrival.tsc = cpu == 0 ? 100 : 500;
  }
  return bundle;
}

TEST(TaskMoves, KnowsWhenAThreadWasElsewhere) {
  trace::TraceBundle bundle = two_processors();
  const TaskMoves first(bundle, 0);
  EXPECT_TRUE(first.was_elsewhere(1, 400, 600));
  EXPECT_FALSE(first.was_elsewhere(1, 100, 500));
  EXPECT_FALSE(first.was_elsewhere(1, 500, 600));
  EXPECT_FALSE(first.was_elsewhere(2, 400, 600));
  EXPECT_TRUE(TaskMoves(bundle, 1).was_elsewhere(1, 50, 200));
  bundle.configuration.rtit_ctl = 0;  // of user code alone, stacks go on
  EXPECT_FALSE(TaskMoves(bundle, 0).was_elsewhere(1, 400, 600));
}

TEST(TaskSwitches, FramesOfAThreadThatLeftForAnotherProcessorDoNotGoOn) {
  const trace::TraceBundle bundle = two_processors();
  const TaskMoves moves(bundle, 0);
  Processor processor;
  processor.program.machine.set_moves(&moves);
  processor.program.position.time_known = true;
  processor.program.position.tsc = 400;
  begin_second(processor);
  processor.program.position.tsc = 600;
  processor.enter(kG + 0x20);
  processor.call(kEntry + 0x10, kSchedule);
  processor.switch_to();
  processor.arrive(1, kEntry + 0x44);
  processor.leave(kH + 0x14);
  processor.finish();
  EXPECT_EQ(processor.threads_of(kEntry), (std::vector<std::int64_t>{1, 1, 2}));
  const Frame& left = processor.frames().of(kMain);
  EXPECT_EQ(left.end_how, CallEnd::SWITCH);
  EXPECT_EQ(left.end.tsc, 400U);
  EXPECT_EQ(processor.frames().of(kH).how, CallKind::ROOT);
  EXPECT_TRUE(processor.frames().anomalies.empty());
  EXPECT_EQ(processor.program.self_sum(), processor.program.position.instructions);
}

TEST(TaskSwitches, NotesInUserCodeStandWhereTheyAre) {
  Processor processor;
  processor.call(kMain + 0x10, kF);
  processor.note(2);
  processor.call(kG + 0x10, kH);
  processor.note(1);
  processor.ret(kF + 0x10, kMain + 0x14);
  processor.note(2);
  processor.ret(kH + 0x10, kG + 0x14);
  processor.finish();
  processor.expect_returns({kF, kH});
  EXPECT_EQ(processor.threads_of(kH), std::vector<std::int64_t>{2});
}

TEST(TaskSwitches, NotesWithoutASwitchReachUserCode) {
  Processor processor;
  processor.enter(kMain + 0x10);
  processor.note(2);
  processor.call(kEntry + 0x10, kPerf);
  processor.ret(kPerf + 0x10, kEntry + 0x14);
  processor.leave(kG + 0x14);
  processor.finish();
  EXPECT_EQ(processor.threads_of(kPerf), std::vector<std::int64_t>{1});
  EXPECT_EQ(processor.threads_of(kG), std::vector<std::int64_t>{2});
}

}  // namespace
}  // namespace ptkit::tables::calls
