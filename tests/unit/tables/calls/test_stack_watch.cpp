#include <gtest/gtest.h>

#include "tables/calls/stack_watch.h"
#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

using tables::columns::Column;

constexpr std::uint64_t kMain = 0x1000;
constexpr std::uint64_t kF = 0x2000;
constexpr std::uint64_t kG = 0x3000;
constexpr std::uint64_t kH = 0x4000;

// A program of which a watch sees each row. Each row has the time `now`, to `now + error`.
struct Watched {
  explicit Watched(StackWatch& of) : watch(of) { program.machine.set_watch(&watch); }

  template <typename Branch>
  void at(std::uint64_t now, std::uint32_t error, const Branch& branch) {
    program.place.tsc = now;
    program.place.tsc_error = error;
    program.place.time_known = true;
    program.place.offset = now;
    constexpr std::uint64_t kInsnsBefore = 9;  // of Program::branch()
    Place row = program.place;
    row.instructions += kInsnsBefore;
    if (!program.machine.is_undecided()) watch.before_row(row, program.machine, {});
    branch();
  }
  void end() {
    program.machine.decide_open();
    watch.at_end(program.place, program.machine, {});
    program.finish();
    for (const Frame& frame : program.frames.frames) watch.on_frame(frame, {});
  }

  Program program;
  StackWatch& watch;
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
void run(Watched& watched, std::uint32_t error) {
  Program& program = watched.program;
  watched.at(100, error, [&] { program.call(kMain + 0x10, kF); });
  watched.at(200, error, [&] { program.call(kF + 0x10, kG); });
  watched.at(300, error, [&] { program.ret(kG + 0x10, kF + 0x14); });
  watched.at(400, error, [&] { program.ret(kF + 0x20, kMain + 0x14); });
  watched.end();
}

TEST(TimeWatch, FindsTheFrameBetweenTwoRows) {
  const std::vector<std::uint64_t> times{50, 150, 250, 350, 450};
  TimeWatch watch(times, times);
  Watched watched(watch);
  run(watched, 0);
  const auto rows = watch.rows(0, 1000);
  ASSERT_NE(rows, nullptr);
  EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows), (std::vector<std::uint64_t>{0, kF, kG, kF, 0}));
  EXPECT_EQ(cells<Column::at_times_frame>(*rows), (std::vector<std::uint64_t>{0, 1001, 1002, 1001, 0}));
  const std::uint64_t known = tables::columns::MOMENT_FRAME_KNOWN | tables::columns::MOMENT_ENTRY_KNOWN |
                              tables::columns::MOMENT_INNERMOST | tables::columns::MOMENT_COVERED;
  EXPECT_EQ(cells<Column::at_times_flags>(*rows), (std::vector<std::uint64_t>{0, known, known, known, 0}));
  EXPECT_EQ(cells<Column::at_times_branch>(*rows), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(cells<Column::at_times_end_branch>(*rows), (std::vector<std::uint64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(cells<Column::at_times_offset>(*rows), (std::vector<std::uint64_t>{0, 100, 200, 300, 400}));
}

TEST(TimeWatch, FindsTheFrameThatIsOpenThroughout) {
  const std::vector<std::uint64_t> least{120, 260};
  const std::vector<std::uint64_t> most{320, 320};
  TimeWatch watch(least, most);
  Watched watched(watch);
  run(watched, 10);
  const auto rows = watch.rows(0, 0);
  // f() is open from the first row to the third one, and g() above it for a part of that.
  EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows), (std::vector<std::uint64_t>{kF, kF}));
  for (const auto flags : cells<Column::at_times_flags>(*rows))
    EXPECT_EQ(flags & tables::columns::MOMENT_INNERMOST, 0U);
  EXPECT_EQ(cells<Column::at_times_branch>(*rows), (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(cells<Column::at_times_end_branch>(*rows), (std::vector<std::uint64_t>{3, 3}));
}

TEST(TimeWatch, AWideIntervalMovesNoLaterRow) {
  const std::vector<std::uint64_t> times{250};
  TimeWatch watch(times, times);
  Watched watched(watch);
  Program& program = watched.program;
  watched.at(100, 1000, [&] { program.call(kMain + 0x10, kF); });  // before the next one all the same
  watched.at(200, 10, [&] { program.call(kF + 0x10, kG); });
  watched.at(300, 10, [&] { program.ret(kG + 0x10, kF + 0x14); });
  watched.end();
  const auto rows = watch.rows(0, 0);
  EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows), (std::vector<std::uint64_t>{kG}));
}

TEST(TimeWatch, ACancelledFrameIsNoFrame) {
  const std::vector<std::uint64_t> least{150};
  const std::vector<std::uint64_t> most{350};
  TimeWatch watch(least, most);
  Watched watched(watch);
  Program& program = watched.program;
  watched.at(50, 0, [&] { program.call(kMain + 0x10, kF + 4); });
  watched.at(100, 0, [&] { program.call(kF + 0x10, kF + 0x20); });  // a retpoline
  watched.at(200, 0, [&] { program.ret(kF + 0x28, kG); });
  watched.at(300, 0, [&] { program.call(kG + 0x10, kH); });
  watched.at(400, 0, [&] { program.ret(kH + 0x10, kG + 0x14); });
  watched.end();
  const auto rows = watch.rows(0, 0);
  EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows), (std::vector<std::uint64_t>{kF + 4}));
}

TEST(PlaceWatch, AStubIsTheCallers) {
  PlaceWatch watch({{10, 0}, {20, 0}});
  Watched watched(watch);
  Program& program = watched.program;
  program.code.flags[kG] = CODE_STUB;
  watched.at(100, 0, [&] { program.call(kMain + 0x10, kG); });
  watched.at(200, 0, [&] { program.jump_indirect(kG + 0x10, kH); });
  watched.at(300, 0, [&] { program.ret(kH + 0x10, kMain + 0x14); });
  watched.end();
  const auto rows = watch.rows(0);
  EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows), (std::vector<std::uint64_t>{kMain, kH}));
}

TEST(PlaceWatch, FindsTheFrameAtTheTop) {
  // Ten instructions before each branch, the branch included.
  PlaceWatch watch({{5, 0}, {10, 0}, {19, 200}, {20, 0}, {39, 401}, {UINT64_MAX, 0}});
  Watched watched(watch);
  run(watched, 0);
  const auto rows = watch.rows(10);
  EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows),
            (std::vector<std::uint64_t>{0, kF, kF, kG, kMain, kMain}));
  EXPECT_EQ(watch.frames(), 3U);
}

// Three frames of f() have called setjmp(). Rows wait until returns show to which of them longjmp() went.
TEST(PlaceWatch, SeesRowsThatHaveWaited) {
  constexpr std::uint64_t kCallee = kH + 0x100;
  for (std::uint64_t target = 0; target < 3; ++target) {
    PlaceWatch watch({{.instructions = 125, .offset = 0}});  // within the callee
    Watched watched(watch);
    Program& program = watched.program;
    std::uint64_t now = 0;
    const auto row = [&](const auto& branch) { watched.at(now += 10, 0, branch); };
    program.code.flags[kH] = CODE_SETJMP;
    row([&] { program.call(kMain + 0x10, kF); });
    for (int depth = 0; depth < 3; ++depth) {
      row([&] { program.call(kF + 0x10, kH); });
      row([&] { program.ret(kH + 0x10, kF + 0x14); });
      row([&] { program.call(kF + 0x20, depth == 2 ? kG : kF); });
    }
    row([&] { program.jump_indirect(kG + 0x30, kF + 0x14); });
    row([&] { program.call(kF + 0x60, kCallee); });
    EXPECT_TRUE(program.machine.is_undecided());
    row([&] { program.ret(kCallee + 0x10, kF + 0x64); });
    for (std::uint64_t depth = target; depth > 0; --depth) row([&] { program.ret(kF + 0x70, kF + 0x24); });
    row([&] { program.ret(kF + 0x70, kMain + 0x14); });
    watched.end();
    const auto rows = watch.rows(0);
    ASSERT_NE(rows, nullptr);
    EXPECT_EQ(cells<Column::at_times_entry_ip>(*rows), std::vector<std::uint64_t>{kCallee}) << target;
    EXPECT_EQ(cells<Column::at_times_depth>(*rows), std::vector<std::uint64_t>{target + 2}) << target;
  }
}

}  // namespace
}  // namespace ptkit::tables::calls
