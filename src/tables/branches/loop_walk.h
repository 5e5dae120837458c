// Follows a stream through the loops of each frame of its call stacks. What a frame calls, also itself, does
// not disturb its loops.
//
//   branches -> StreamCalls -> StackMachine
//                    |              ^
//                    +-> LoopWalk --+ (reads which frame is at the top)
//                           +-> LoopWatcher
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tables/branches/loop_map.h"
#include "tables/calls/stack_probe.h"

namespace ptkit::tables::branches {

// From an entry of a loop until it is left, in one frame.
struct Visit {
  std::uint64_t number = 0;  // of all visits of the stream
  std::uint64_t rounds = 0;  // executions of the head
  std::int32_t loop = 0;
  std::uint32_t path = 0;  // a watcher's; 0 once rows are missing
  bool is_whole = false;   // it began with its first round, and nothing of it is missing
};

class LoopWatcher {
 public:
  virtual ~LoopWatcher() = default;
  // The head is executed for the first time, or control flow is within the loop without that. `outer`: the
  // visit around it in the frame; null: there is none.
  virtual void on_enter(Visit& visit, Visit* outer) = 0;
  // The head is executed again.
  virtual void on_round(Visit& visit) = 0;
  // `visit` is not whole if its end is not known.
  virtual void on_leave(Visit& visit) = 0;
  // A row, after what the code before it does. `innermost`: the visit that its instruction is in; null:
  // there is none.
  virtual void on_row(const calls::BranchStep& row, std::uint8_t kind, Visit* innermost,
                      const calls::Owner& owner) = 0;
};

class LoopWalk final : public calls::StackProbe {
 public:
  // Both must outlive this. `has_window`: rows before on_window() do not count.
  LoopWalk(const LoopMap& map, LoopWatcher& watcher, bool has_window)
      : map_(map), watcher_(watcher), is_active_(!has_window), facts_(kFacts) {}

  void before_row(const calls::BranchStep& row, std::uint8_t kind, calls::StackMachine& machine,
                  const calls::Owner& owner) override;
  void at_end(const calls::StreamPosition&, calls::StackMachine&, const calls::Owner&) override {}
  void on_frame(const calls::Frame& frame, const calls::Owner&) override;
  void on_window(std::span<const std::uint64_t>, std::uint64_t) override { is_active_ = true; }

 private:
  static constexpr std::size_t kFacts = std::size_t{1} << 13U;

  // Straight code from `first` on, before `end`, that `last` is the last or the next instruction of.
  struct Run {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    trace::SpaceId space = trace::kAnySpace;
    bool has_last = false;   // it is executed
    bool has_first = false;  // else only `last` is known
    bool is_known = false;   // of a function with loops
    std::uint32_t function = 0;
    std::int32_t begin_loop = kNoLoop;
    std::int32_t end_loop = kNoLoop;
    std::span<const LoopMap::Head> heads{};
  };
  struct Frame {
    std::uint32_t function = 0;
    std::vector<Visit> visits;  // innermost last
  };
  [[nodiscard]] const Run& run_to(std::uint64_t ip, bool has_last, trace::SpaceId space);
  [[nodiscard]] Visit* follow(const calls::BranchStep& row, std::uint64_t frame, trace::SpaceId space);
  void arrive(Frame& frame, std::int32_t loop);
  void leave_outside(Frame& frame, std::int32_t loop);
  void enter_missing(Frame& frame, std::int32_t loop);
  void enter(Frame& frame, std::int32_t loop, bool is_whole);
  void end(Frame& frame, bool is_known);
  void cancel(std::uint64_t first);

  const LoopMap& map_;
  LoopWatcher& watcher_;
  bool is_active_;
  std::vector<Run> facts_;                           // a direct-mapped cache
  std::unordered_map<std::uint64_t, Frame> frames_;  // by id: those that are within loops
  std::uint64_t current_id_ = UINT64_MAX;
  Frame* current_ = nullptr;  // of `current_id_`; null: it is within no loop
  std::uint64_t ip_ = 0;      // where control flow is
  bool ip_known_ = false;
  std::uint64_t visits_ = 0;
};

}  // namespace ptkit::tables::branches
