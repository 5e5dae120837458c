// The threads of a stream: each goes on with the stack that it was left with. exec() ends the frames of a
// thread, and so does a move to the stream of another processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tables/calls/stack/suspended_stacks.h"
#include "trace/bundle.h"

namespace ptkit::tables::calls {

// Threads that go on in the stream of another processor: a stream does not show their rows there.
class TaskMoves {
 public:
  // Of the threads of a stream. None, unless it is one of several processors, and the kernel was traced.
  TaskMoves(const trace::TraceBundle& bundle, std::uint32_t stream);

  [[nodiscard]] bool empty() const noexcept { return arrivals_.empty(); }
  // Another stream has the thread between two times, in TSC ticks.
  [[nodiscard]] bool was_elsewhere(std::int64_t tid, std::uint64_t from, std::uint64_t until) const;

 private:
  std::vector<std::pair<std::int64_t, std::uint64_t>>
      arrivals_;  // threads and times in other streams; sorted
};

struct ThreadsState {
  std::map<ThreadKey, std::unique_ptr<Thread>> threads;
  bool left = false;  // rows are of other threads: since leave()
};

class StreamThreads {
 public:
  StreamThreads(CurrentStack& current, SuspendedStacks& suspended)
      : current_(current), suspended_(suspended) {
    enter({}, {});
  }

  [[nodiscard]] ThreadsState& state() noexcept { return state_; }
  [[nodiscard]] const ThreadsState& state() const noexcept { return state_; }
  // Null: threads stay in this stream.
  void set_moves(const TaskMoves* moves) noexcept { moves_ = moves; }

  [[nodiscard]] bool is_left() const noexcept { return state_.left; }
  // The thread of the last rows is executed, and it is this one.
  [[nodiscard]] bool is_current(const Owner& owner) const noexcept {
    return owner == current_.owner() && !state_.left;
  }
  // The following rows are of this thread and space. The thread before it was left.
  void enter(const Owner& owner, const StreamPosition& position);
  void leave(const StreamPosition& position);
  // Control flow of the thread is not known between `last` and `position`: its frames end.
  void cut(const StreamPosition& last, const StreamPosition& position);
  void begin_window(const StreamPosition& position);
  // Ends all frames. All threads were left.
  void finish(const StreamPosition& position);

  // How many frames are left without those above the kernel's scheduler; 0: it is not open.
  [[nodiscard]] std::size_t above_scheduler() const noexcept;

 private:
  [[nodiscard]] ThreadStack& stack() noexcept { return current_.stack(); }
  void end_moved(std::uint64_t until);
  void end_thread(std::unique_ptr<Thread>& thread, const StreamPosition& position);
  void change_program(const StreamPosition& position);
  void begin_window_of(std::unique_ptr<Thread>& thread, const StreamPosition& position);

  CurrentStack& current_;
  SuspendedStacks& suspended_;
  ThreadsState state_;
  const TaskMoves* moves_ = nullptr;
};

}  // namespace ptkit::tables::calls
