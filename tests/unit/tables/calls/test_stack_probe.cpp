#include <gtest/gtest.h>

#include "tables/calls/stack_probe.h"
#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

using tables::columns::Column;

constexpr std::uint64_t kMain = 0x1000;
constexpr std::uint64_t kF = 0x2000;
constexpr std::uint64_t kG = 0x3000;
constexpr std::uint64_t kH = 0x4000;

// A program of which a probe sees each row. Each row has the time `now`, to `now + error`.
struct Probed {
  explicit Probed(StackProbe& of) : probe(of) { program.machine.set_probe(&probe); }

  template <typename Branch>
  void at(std::uint64_t now, std::uint32_t error, const Branch& branch) {
    program.position.tsc = now;
    program.position.tsc_error = error;
    program.position.time_known = true;
    program.position.offset = now;
    constexpr std::uint64_t kInsnsBefore = 9;  // of Program::branch()
    BranchStep row;
    row.position = program.position;
    row.position.instructions += kInsnsBefore;
    if (!program.machine.is_ambiguous()) probe.before_row(row, 0, program.machine, {});
    branch();
  }
  void end() {
    program.machine.decide_open();
    probe.at_end(program.position, program.machine, {});
    program.finish();
    for (const Frame& frame : program.frames.frames) probe.on_frame(frame, {});
  }

  Program program;
  StackProbe& probe;
};

template <Column C>
std::vector<std::uint64_t> cells(tables::columns::Batch& batch) {
  const auto* const first = batch.cells<C>();
  std::vector<std::uint64_t> found;
  for (std::size_t row = 0; row < batch.rows(); ++row)
    found.push_back(first != nullptr ? static_cast<std::uint64_t>(first[row])
                                     : batch.uniform_value(tables::columns::index_of(C)));
  return found;
}

// main() calls f() at 100, f() calls g() at 200, g() returns at 300, f() at 400.
void run(Probed& probed, std::uint32_t error) {
  Program& program = probed.program;
  probed.at(100, error, [&] { program.call(kMain + 0x10, kF); });
  probed.at(200, error, [&] { program.call(kF + 0x10, kG); });
  probed.at(300, error, [&] { program.ret(kG + 0x10, kF + 0x14); });
  probed.at(400, error, [&] { program.ret(kF + 0x20, kMain + 0x14); });
  probed.end();
}

TEST(TimeProbe, FindsTheFrameBetweenTwoRows) {
  const std::vector<std::uint64_t> times{50, 150, 250, 350, 450};
  TimeProbe probe(times, times);
  Probed probed(probe);
  run(probed, 0);
  const auto rows = probe.rows(0, 1000);
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows), (std::vector<std::uint64_t>{0, kF, kG, kF, 0}));
  EXPECT_EQ(cells<Column::at_times_frame>(*rows), (std::vector<std::uint64_t>{0, 1001, 1002, 1001, 0}));
  const std::uint64_t known = tables::columns::STACK_FRAME_KNOWN | tables::columns::STACK_ENTRY_KNOWN |
                              tables::columns::STACK_INNERMOST | tables::columns::STACK_COVERED;
  EXPECT_EQ(cells<Column::at_times_flags>(*rows), (std::vector<std::uint64_t>{0, known, known, known, 0}));
  EXPECT_EQ(cells<Column::at_times_branch>(*rows), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(cells<Column::at_times_end_branch>(*rows), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(cells<Column::at_times_offset>(*rows), (std::vector<std::uint64_t>{0, 100, 200, 300, 400}));
}

TEST(TimeProbe, FindsTheFrameThatIsOpenThroughout) {
  const std::vector<std::uint64_t> least{120, 260};
  const std::vector<std::uint64_t> most{320, 320};
  TimeProbe probe(least, most);
  Probed probed(probe);
  run(probed, 10);
  const auto rows = probe.rows(0, 0);
  // f() is open from the first row to the third one, and g() above it for a part of that.
  EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows), (std::vector<std::uint64_t>{kF, kF}));
  for (const auto flags : cells<Column::at_times_flags>(*rows))
    EXPECT_EQ(flags & tables::columns::STACK_INNERMOST, 0U);
  EXPECT_EQ(cells<Column::at_times_branch>(*rows), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(cells<Column::at_times_end_branch>(*rows), (std::vector<std::uint64_t>{3, 3}));
}

TEST(TimeProbe, AWideIntervalMovesNoLaterRow) {
  const std::vector<std::uint64_t> times{250};
  TimeProbe probe(times, times);
  Probed probed(probe);
  Program& program = probed.program;
  probed.at(100, 1000, [&] { program.call(kMain + 0x10, kF); });  // before the next one all the same
  probed.at(200, 10, [&] { program.call(kF + 0x10, kG); });
  probed.at(300, 10, [&] { program.ret(kG + 0x10, kF + 0x14); });
  probed.end();
  const auto rows = probe.rows(0, 0);
  EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows), (std::vector<std::uint64_t>{kG}));
}

TEST(TimeProbe, ACancelledFrameIsNoFrame) {
  const std::vector<std::uint64_t> least{150};
  const std::vector<std::uint64_t> most{350};
  TimeProbe probe(least, most);
  Probed probed(probe);
  Program& program = probed.program;
  probed.at(50, 0, [&] { program.call(kMain + 0x10, kF + 4); });
  probed.at(100, 0, [&] { program.call(kF + 0x10, kF + 0x20); });  // a retpoline
  probed.at(200, 0, [&] { program.ret(kF + 0x28, kG); });
  probed.at(300, 0, [&] { program.call(kG + 0x10, kH); });
  probed.at(400, 0, [&] { program.ret(kH + 0x10, kG + 0x14); });
  probed.end();
  const auto rows = probe.rows(0, 0);
  EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows), (std::vector<std::uint64_t>{kF + 4}));
}

TEST(PositionProbe, AStubIsTheCallers) {
  PositionProbe probe({{10, 0}, {20, 0}});
  Probed probed(probe);
  Program& program = probed.program;
  program.code.flags[kG] = CODE_STUB;
  probed.at(100, 0, [&] { program.call(kMain + 0x10, kG); });
  probed.at(200, 0, [&] { program.jump_indirect(kG + 0x10, kH); });
  probed.at(300, 0, [&] { program.ret(kH + 0x10, kMain + 0x14); });
  probed.end();
  const auto rows = probe.rows(0);
  EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows), (std::vector<std::uint64_t>{kMain, kH}));
}

TEST(PositionProbe, FindsTheFrameAtTheTop) {
  // Ten instructions before each branch, the branch included.
  PositionProbe probe({{5, 0}, {10, 0}, {19, 200}, {20, 0}, {39, 401}, {UINT64_MAX, 0}});
  Probed probed(probe);
  run(probed, 0);
  const auto rows = probe.rows(10);
  EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows),
            (std::vector<std::uint64_t>{0, kF, kF, kG, kMain, kMain}));
  EXPECT_EQ(probe.frames(), 3U);
}

// Three frames of f() have called setjmp(). Rows wait until returns show to which of them longjmp() went.
TEST(PositionProbe, SeesRowsThatHaveWaited) {
  constexpr std::uint64_t kCallee = kH + 0x100;
  for (std::uint64_t target = 0; target < 3; ++target) {
    PositionProbe probe({{.instructions = 125, .offset = 0}});  // within the callee
    Probed probed(probe);
    Program& program = probed.program;
    std::uint64_t now = 0;
    const auto row = [&](const auto& branch) { probed.at(now += 10, 0, branch); };
    program.code.flags[kH] = CODE_SETJMP;
    row([&] { program.call(kMain + 0x10, kF); });
    for (int depth = 0; depth < 3; ++depth) {
      row([&] { program.call(kF + 0x10, kH); });
      row([&] { program.ret(kH + 0x10, kF + 0x14); });
      row([&] { program.call(kF + 0x20, depth == 2 ? kG : kF); });
    }
    row([&] { program.jump_indirect(kG + 0x30, kF + 0x14); });
    row([&] { program.call(kF + 0x60, kCallee); });
    EXPECT_TRUE(program.machine.is_ambiguous());
    row([&] { program.ret(kCallee + 0x10, kF + 0x64); });
    for (std::uint64_t depth = target; depth > 0; --depth) row([&] { program.ret(kF + 0x70, kF + 0x24); });
    row([&] { program.ret(kF + 0x70, kMain + 0x14); });
    probed.end();
    const auto rows = probe.rows(0);
    ASSERT_NE(rows, nullptr);
    EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows), std::vector<std::uint64_t>{kCallee}) << target;
    EXPECT_EQ(cells<Column::at_times_depth>(*rows), std::vector<std::uint64_t>{target + 2}) << target;
  }
}

}  // namespace
}  // namespace ptkit::tables::calls
