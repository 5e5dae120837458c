// Stacks in files: a machine that goes on with them finds the frames that the one before would find.
#include <gtest/gtest.h>

#include <tuple>

#include "unit/tables/calls/random_branches.h"

namespace ptkit::tables::calls {
namespace {

constexpr std::size_t kRows = 600;
constexpr RowWindow kWindow{.begin = 350, .end = 500};

auto position_of(const StreamPosition& position) {
  return std::tuple(position.instructions, position.branches, position.stream_instructions, position.offset,
                    position.tsc);
}

void expect_same(const Frame& one, const Frame& other) {
  const auto begins = [](const Frame& frame) {
    return std::tuple(frame.id, frame.parent, frame.entry_ip, frame.call_ip, frame.return_ip, frame.import_ip,
                      frame.continues, frame.segment, frame.depth, frame.how, frame.flags, frame.is_far,
                      frame.function, position_of(frame.begin));
  };
  const auto ends = [](const Frame& frame) {
    return std::tuple(frame.instructions, frame.self_instructions, frame.new_instructions, frame.branches,
                      frame.new_branches, frame.end_how, position_of(frame.end));
  };
  EXPECT_EQ(begins(one), begins(other));
  EXPECT_EQ(ends(one), ends(other));
  EXPECT_EQ(one.off_cpu, other.off_cpu);
}

std::vector<Frame> inside(const Program& program) {
  std::vector<Frame> frames;
  for (const Frame& frame : program.frames.frames) {
    if (!frame.is_outside) frames.push_back(frame);
  }
  return frames;
}

TEST(StackState, FramesOfAWindowAreTheSame) {
  std::size_t found = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    Program whole;
    run_random(whole, seed, kRows, kWindow);
    Program before;
    Program rest;
    Resumption resumption{.row = 50 + seed, .program = rest};
    run_random(before, seed, kRows, kWindow, &resumption);
    if (!resumption.is_restored || !rest.machine.has_ended()) continue;
    ++found;
    const std::vector<Frame> expected = inside(whole);
    const std::vector<Frame> frames = inside(rest);
    ASSERT_EQ(frames.size(), expected.size()) << seed;
    for (std::size_t i = 0; i < frames.size(); ++i) expect_same(frames[i], expected[i]);
    EXPECT_EQ(rest.frames.owners.back(), whole.frames.owners.back());
    ASSERT_EQ(rest.frames.anomalies.size(), whole.frames.anomalies.size()) << seed;
    EXPECT_EQ(rest.machine.frames(), whole.machine.frames());
    ASSERT_FALSE(::testing::Test::HasFailure()) << seed;
  }
  EXPECT_GT(found, 150U);
}

// What is damaged is refused, or stacks that could be: rows go on without a fault.
TEST(StackState, DamagedOnesDoNoHarm) {
  Program before;
  Program rest;
  Resumption resumption{.row = 400, .program = rest};
  run_random(before, 7, kRows, RowWindow{.begin = 450}, &resumption);
  ASSERT_TRUE(resumption.is_restored);
  std::mt19937 random(1);
  std::size_t refused = 0;
  for (std::size_t round = 0; round < 3000; ++round) {
    std::vector<std::uint8_t> state = resumption.state;
    for (std::size_t i = 0; i <= round % 3; ++i)
      state[random() % state.size()] = static_cast<std::uint8_t>(random() % 4 == 0 ? random() : random() % 3);
    if (round % 5 == 0) state.resize(random() % state.size());
    Program program;
    program.machine.set_window();
    base::FieldReader fields(state);
    const StateLimits limits{.functions = kFirstFunction + 0x2000, .spaces = 4, .frames = 100000};
    if (!program.machine.restore(fields, limits)) {
      ++refused;
      continue;
    }
    program.position = before.position;
    run_random(program, static_cast<std::uint32_t>(round), 60, RowWindow{.begin = 5});
    program.finish();
  }
  EXPECT_GT(refused, 500U);
  EXPECT_LT(refused, 3000U);
}

}  // namespace
}  // namespace ptkit::tables::calls
