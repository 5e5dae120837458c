#include <gtest/gtest.h>

#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

// Executes at known times: each lies in [tsc, tsc + error].
class TimedProgram : public Program {
 public:
  TimedProgram() { position.time_known = true; }
  TimedProgram& at(std::uint64_t tsc, std::uint32_t error = 0) {
    position.tsc = tsc;
    position.tsc_error = error;
    return *this;
  }
  void own(std::int64_t tid) {
    Owner owner;
    owner.pid = 1;
    owner.tid = tid;
    machine.on_owner(owner, position);
  }
};

void expect_length(const Length& length, std::uint64_t least, std::uint64_t most) {
  EXPECT_EQ(length.least, least);
  EXPECT_EQ(length.most, most);
}

TEST(OffCpuTime, IsUntracedWhilePacketsAreDisabled) {
  TimedProgram program;
  program.at(100).call(kMain + 0x10, kF);
  program.at(110).call(kF + 0x10, kG);
  program.at(120, 5).syscall(kG + 0x10);
  program.machine.on_disabled(program.position);
  program.at(200, 10).enable(kG + 0x14);
  program.at(300).ret(kG + 0x20, kF + 0x14);
  program.at(310).ret(kF + 0x20, kMain + 0x14);
  program.at(320).finish();
  ASSERT_EQ(program.frames.frames.size(), 4U);
  const Frame& leaf = program.frames.frames[0];
  EXPECT_EQ(leaf.how, CallKind::SYSCALL);
  for (const Frame& frame : program.frames.frames) {
    expect_length(frame.off_cpu.untraced, 200 - 125, 210 - 120);
    expect_length(frame.off_cpu.switched, 0, 0);
    expect_length(frame.off_cpu.lost, 0, 0);
  }
}

TEST(OffCpuTime, IsOfTheFramesThatWereOpen) {
  TimedProgram program;
  program.at(100).call(kMain + 0x10, kF);
  program.machine.on_disabled(program.position);
  program.at(150).enable(kF + 0x4);
  program.at(160).call(kF + 0x10, kG);
  program.at(170).ret(kG + 0x10, kF + 0x14);
  program.at(180).ret(kF + 0x20, kMain + 0x14);
  program.at(190).call(kMain + 0x20, kG);
  program.machine.on_disabled(program.position);
  program.at(290).enable(kG + 0x4);
  program.at(300).ret(kG + 0x10, kMain + 0x24);
  program.finish();
  const auto& frames = program.frames.frames;
  ASSERT_EQ(frames.size(), 4U);
  expect_length(frames[0].off_cpu.untraced, 0, 0);
  expect_length(frames[1].off_cpu.untraced, 50, 50);
  expect_length(frames[2].off_cpu.untraced, 100, 100);
  expect_length(frames[3].off_cpu.untraced, 150, 150);
}

TEST(OffCpuTime, IsSwitchedWhileAnotherThreadIsExecuted) {
  TimedProgram program;
  program.at(100).own(1);
  program.at(110).call(kMain + 0x10, kF);
  program.at(120).machine.on_disabled(program.position);
  program.at(130).own(2);
  program.at(140).enable(kMain + 0x10);
  program.at(150).call(kMain + 0x10, kG);
  program.at(200, 7).own(1);
  program.at(230).enable(kF + 0x14);
  program.at(240).ret(kF + 0x20, kMain + 0x14);
  program.at(300).finish();
  const Frame& frame = program.frames.of(kF);
  expect_length(frame.off_cpu.untraced, (130 - 120) + (230 - 207), (130 - 120) + (230 - 200));
  expect_length(frame.off_cpu.switched, 200 - 130, 207 - 130);
  // The other thread does not come back.
  expect_length(program.frames.of(kG).off_cpu.switched, 300 - 207, 300 - 200);
}

TEST(OffCpuTime, IsLostFromTheLastBranchToTheEndOfAGap) {
  TimedProgram program;
  program.at(100).call(kMain + 0x10, kF);
  const StreamPosition last = program.position;
  program.at(180, 20);
  program.machine.on_gap(last, program.position);
  program.at(200).enable(kMain + 0x10);
  program.at(210).finish();
  expect_length(program.frames.of(kF).off_cpu.lost, 80, 100);
  expect_length(program.frames.frames.back().off_cpu.lost, 0, 0);
}

TEST(OffCpuTime, ContainsNothingBeforeACallerThatIsFoundLater) {
  TimedProgram program;
  program.at(100).call(kF + 0x10, kG);
  program.machine.on_disabled(program.position);
  program.at(150).enable(kG + 0x4);
  program.at(160).ret(kG + 0x10, kF + 0x14);
  program.at(170).ret(kF + 0x20, kMain + 0x14);
  program.at(200).finish();
  // main() began before the first packet, so it was open when packets were disabled.
  expect_length(program.frames.frames.back().off_cpu.untraced, 50, 50);
}

TEST(OffCpuTime, NeedsKnownTimes) {
  Program program;
  program.call(kMain + 0x10, kF);
  program.machine.on_disabled(program.position);
  program.enable(kF + 0x4);
  program.ret(kF + 0x20, kMain + 0x14);
  program.finish();
  for (const Frame& frame : program.frames.frames) EXPECT_EQ(frame.off_cpu, OffCpuTime{});
}

}  // namespace
}  // namespace ptkit::tables::calls
