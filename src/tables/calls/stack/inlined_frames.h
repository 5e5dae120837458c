// Frames of inlined calls: above the frame of the function that has their code. No rule for other frames
// looks at them.
#pragma once

#include <cstdint>
#include <vector>

#include "tables/calls/stack/current_stack.h"

namespace ptkit::tables::calls {

class InlinedFrames {
 public:
  explicit InlinedFrames(CurrentStack& current) : current_(current) {}

  // A run has the instructions from the target of a branch, or from where packets were enabled, to the next
  // branch. It begins at `ip`.
  void begin_run(std::uint64_t ip, const StreamPosition& position);
  // Ends the run at a branch, and begins the next one after it.
  void run_to_branch(const BranchStep& step);
  // The run may go on, perhaps in another thread.
  void pause_run(const StreamPosition& position);
  // Opens and closes frames where the run up to `end` enters and leaves inlined calls.
  void end_run(const StreamPosition& end, std::uint64_t last_ip = 0, bool executes_last = false);
  [[nodiscard]] bool has_run() const noexcept { return run_.is_open; }
  void drop_run() noexcept { run_.is_open = false; }

 private:
  struct Run {
    StreamPosition begin;   // with counts of the stream
    StreamPosition paused;  // after the instructions that are done
    std::uint64_t ip = 0;
    std::uint64_t done = 0;
    flow::BranchKind kind = flow::BranchKind::JUMP;  // of the branch
    std::uint8_t flags = 0;                          // of the branch: flow::RowFlag
    bool is_open = false;
    bool after_branch = false;
  };

  [[nodiscard]] ThreadStack& stack() noexcept { return current_.stack(); }
  [[nodiscard]] std::uint64_t count_in_run(const StreamPosition& end) const noexcept;
  [[nodiscard]] StreamPosition position_in_run(const InlineChange& change,
                                               const StreamPosition& end) const noexcept;
  void enter_inlined(const InlineChange& change, const StreamPosition& position);
  [[nodiscard]] CallEnd end_of_inlined(const InlineChange& change) noexcept;

  CurrentStack& current_;
  Run run_;
  std::vector<std::uint32_t> entered_;  // inlined calls
};

}  // namespace ptkit::tables::calls
