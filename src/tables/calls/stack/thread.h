// A thread of a stream with one of its stacks, as rows of the thread leave it and find it again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "tables/calls/stack/thread_stack.h"

namespace ptkit::tables::calls {

// Unknown threads of one address space are one thread: processes share no stacks.
using ThreadKey = std::pair<std::int64_t, std::int64_t>;
[[nodiscard]] inline ThreadKey key_of(const Owner& owner) noexcept {
  if (owner.tid != trace::kNoId) return {owner.pid, owner.tid};
  return {trace::kNoId, trace::kNoId - std::int64_t{owner.space}};
}

// Instructions and branches of a thread: those of the stream less those of other threads.
struct ThreadCounts {
  std::uint64_t instructions = 0;  // when another thread came
  std::uint64_t branches = 0;
  std::uint64_t other_instructions = 0;
  std::uint64_t other_branches = 0;

  // A position in the stream, with counts of the thread.
  [[nodiscard]] StreamPosition local(StreamPosition position) const noexcept {
    position.instructions = std::max(position.instructions, other_instructions) - other_instructions;
    position.branches = std::max(position.branches, other_branches) - other_branches;
    return position;
  }
  // A position of the thread, with counts of the stream.
  [[nodiscard]] StreamPosition global(StreamPosition position) const noexcept {
    position.instructions += other_instructions;
    position.branches += other_branches;
    return position;
  }
  // A position at which another thread is executed, with counts of this one.
  [[nodiscard]] StreamPosition paused(StreamPosition position) const noexcept {
    position.instructions = instructions;
    position.branches = branches;
    return position;
  }
  // Another thread comes at a position of this one.
  void pause(const StreamPosition& position) noexcept {
    instructions = position.instructions;
    branches = position.branches;
  }
  // The thread goes on at a position of the stream.
  void resume(const StreamPosition& position) noexcept {
    other_instructions = position.instructions - instructions;
    other_branches = position.branches - branches;
  }
};

// Frames that the last gap has ended. Functions that were called before it return after it, to the return
// addresses of these frames and in their order.
class GapFrames {
 public:
  void clear() noexcept {
    frames_.clear();
    matched_ = 0;
  }
  // The open frames end at a gap.
  void cut(const ThreadStack& stack) {
    clear();
    for (std::size_t i = 0; i < stack.size(); ++i) {
      const OpenFrame& open = stack.at(i);
      // Of frames that share a return address, the innermost one returns.
      if (open.tails != 0) frames_.pop_back();
      frames_.push_back({open.id, open.return_ip});
    }
  }
  // A frame without a known caller returns to `ip`: the `id` of the frame that goes on there. None: not
  // known.
  [[nodiscard]] std::optional<std::uint64_t> return_to(std::uint64_t ip) noexcept {
    while (!frames_.empty()) {
      const bool is_match = frames_.back().return_ip == ip;
      frames_.pop_back();
      matched_ = is_match ? matched_ + 1 : 0;
      if (is_match) break;
    }
    constexpr std::size_t kEnough = 2;
    if (matched_ < kEnough || frames_.empty()) return std::nullopt;
    return frames_.back().id;
  }
  [[nodiscard]] bool is_within(const StateLimits& limits) const noexcept {
    return std::ranges::all_of(frames_, [&limits](const Ended& frame) { return frame.id < limits.frames; });
  }
  // stack_state.cpp
  template <typename Fields>
  void fields_of_state(Fields& fields);

 private:
  struct Ended {
    std::uint64_t id = 0;
    std::uint64_t return_ip = 0;  // 0: not known
  };
  std::vector<Ended> frames_;  // innermost last
  std::size_t matched_ = 0;    // returns in a row that matched them
};

struct Thread {
  // Why packets are disabled, if the last branch tells.
  enum class Off : std::uint8_t { NONE, ASYNC };

  Thread(FrameIds& ids, MoreGroups* groups, FrameSink& sink, const Owner& owner)
      : stack(ids, groups, sink, owner) {}

  ThreadStack stack;
  GapFrames gap_frames;
  StreamPosition left;            // where another thread came
  std::optional<Owner> executed;  // exec() ends frames of this one where the kernel returns
  Off off = Off::NONE;
  std::uint64_t async_ip = 0;
  std::uint64_t returning = 0;  // branches up to a jump to a thunk that returns; 0: there was none
  ThreadCounts counts;
  // Of stacks that a thread switches; 0: it has switched none.
  std::uint64_t stack_number = 0;
  std::uint64_t resumed_by = 0;  // number of the stack that it went on after
  bool is_scheduler = false;     // it was entered by a call, and chooses which stack goes on
  bool begun = false;            // a frame was opened since the last gap or exec()
};

}  // namespace ptkit::tables::calls
