// A stream that begins anywhere has the frames of the whole stream, as far as they begin after it; and no
// frame spans a gap.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>
#include <string>

#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

using flow::BranchKind;

constexpr std::uint64_t kFunctions = 12;
constexpr std::size_t kMostDepth = 30;

struct Executed {
  BranchKind kind = BranchKind::CALL;
  std::uint64_t from = 0;
  std::optional<std::uint64_t> to;
  bool enables = false;  // packets, at `to`: it is no branch
};

// A program of calls, tail calls, system calls and signals.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint32_t seed) : random_(seed) {}

  std::vector<Executed> run(std::size_t count) {
    while (executed_.size() < count) step();
    return std::move(executed_);
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  std::uint64_t function() { return kRestorer + (1 + below(kFunctions)) * GivenCode::kSize; }
  // Of a call in the current function: below the others of handlers and system calls.
  std::uint64_t site() { return function_ + GivenCode::kInsn * (1 + below(8)); }

  void step() {
    const std::uint64_t what = below(20);
    if (what < 8 && returns_.size() < kMostDepth) {
      const std::uint64_t from = site();
      const std::uint64_t to = function();
      returns_.push_back(from + GivenCode::kInsn);
      go(below(4) == 0 ? BranchKind::CALL_INDIRECT : BranchKind::CALL, from, to);
    } else if (what < 11) {
      const std::uint64_t to = function();
      if (to != function_)
        go(below(2) == 0 ? BranchKind::JUMP : BranchKind::JUMP_INDIRECT, function_ + 0x40, to);
    } else if (what < 12) {
      executed_.push_back({BranchKind::SYSCALL, function_ + 0x80, std::nullopt});
      executed_.push_back({BranchKind::SYSCALL, 0, function_ + 0x84, true});
    } else if (what < 13 && returns_.size() < kMostDepth) {
      const std::uint64_t interrupted = function_ + 0x90 + below(4) * GivenCode::kInsn;
      executed_.push_back({BranchKind::ASYNC, interrupted, std::nullopt});
      returns_.push_back(kRestorer);
      interrupted_.push_back(interrupted);
      function_ = function();
      executed_.push_back({BranchKind::ASYNC, 0, function_, true});
    } else if (!returns_.empty()) {
      leave();
    }
  }
  void leave() {
    const std::uint64_t to = returns_.back();
    returns_.pop_back();
    go(BranchKind::RETURN, function_ + 0xc0, to);
    if (to != kRestorer) return;
    executed_.push_back({BranchKind::SYSCALL, kRestorer + 8, std::nullopt});
    executed_.push_back({BranchKind::SYSCALL, 0, interrupted_.back(), true});
    function_ = interrupted_.back() / GivenCode::kSize * GivenCode::kSize;
    interrupted_.pop_back();
  }
  void go(BranchKind kind, std::uint64_t from, std::uint64_t to) {
    executed_.push_back({kind, from, to});
    function_ = to / GivenCode::kSize * GivenCode::kSize;
  }

  static constexpr std::uint64_t kRestorer = 0x10'0000;
  std::mt19937 random_;
  std::vector<Executed> executed_;
  std::vector<std::uint64_t> returns_;
  std::vector<std::uint64_t> interrupted_;
  std::uint64_t function_ = kRestorer + GivenCode::kSize;
};

void execute(Program& program, const Executed& one) {
  if (one.enables) {
    program.enable(one.to.value_or(0));
  } else if (one.kind == BranchKind::ASYNC) {
    program.async(one.from);
  } else {
    program.branch(one.kind, one.from, one.to, 3);
  }
}

// What does not depend on frames below.
std::string known_of(const Frame& frame) {
  constexpr unsigned kOfOthers = FRAME_RECURSIVE | FRAME_PARENT;
  std::ostringstream text;
  text << std::hex << "entry " << frame.entry_ip << " call " << frame.call_ip << " return " << frame.return_ip
       << std::dec << " how " << unsigned(frame.how) << ' ' << unsigned(frame.end_how) << " instructions "
       << frame.instructions << ' ' << frame.self_instructions << " branches " << frame.branches << " flags "
       << (frame.flags & ~kOfOthers);
  return text.str();
}

// Frames that begin after `position`, by their begin: frames of one begin are numbered. Left out are those
// that return for a function that began before.
std::map<std::pair<std::uint64_t, std::size_t>, std::string> frames_after(const Frames& frames,
                                                                          std::uint64_t position) {
  std::map<std::uint64_t, const Frame*> by_id;
  for (const Frame& frame : frames.frames) by_id[frame.id] = &frame;
  std::map<std::pair<std::uint64_t, std::size_t>, std::string> found;
  for (const auto& [id, frame] : by_id) {
    const Frame* first = frame;
    while (first->how == CallKind::TAIL && by_id.contains(first->parent)) first = by_id[first->parent];
    std::size_t number = 0;
    while (first->begin.offset > position &&
           !found.try_emplace({frame->begin.offset, number}, known_of(*frame)).second)
      ++number;
  }
  return found;
}

TEST(StackMachine, FindsTheSameFramesWhereverAStreamBegins) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const auto executed = RandomProgram(seed).run(600);
    for (std::size_t cut = 0; cut < executed.size(); cut += 37) {
      Program whole;
      Program part;
      std::uint64_t position = 0;
      for (std::size_t i = 0; i < executed.size(); ++i) {
        if (i == cut) {
          part.position = whole.position;
          position = whole.position.offset;
        }
        execute(whole, executed[i]);
        if (i >= cut) execute(part, executed[i]);
      }
      whole.finish();
      part.finish();
      EXPECT_EQ(whole.frames.anomalies.size(), 0U) << seed;
      EXPECT_EQ(frames_after(part.frames, position), frames_after(whole.frames, position))
          << seed << " from " << cut;
    }
  }
}

TEST(StackMachine, NoFrameSpansAGap) {
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::uint64_t> gaps;
    Program program;
    for (const Executed& one : RandomProgram(seed).run(600)) {
      if (random() % 40 == 0) {
        program.position.offset += 2;
        gaps.push_back(program.position.offset);
        program.machine.on_gap(program.position, program.position);
        program.position.offset += 2;
      }
      if (random() % 40 != 0) execute(program, one);
    }
    program.finish();
    EXPECT_EQ(program.self_sum(), program.position.instructions) << seed;
    for (const Frame& frame : program.frames.frames) {
      for (const std::uint64_t gap : gaps)
        EXPECT_FALSE(frame.begin.offset < gap && frame.end.offset > gap) << seed << ' ' << frame.id;
    }
  }
}

}  // namespace
}  // namespace ptkit::tables::calls
