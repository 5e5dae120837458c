// Recursion of frames by another group than their function, or without tail calls below each other: as if
// stacks were rebuilt with these settings. Frames arrive in the order in which they were opened.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "tables/calls/frame_index.h"
#include "tables/calls/stack/frame.h"
#include "tables/calls/stack/frame_groups.h"
#include "tables/calls/stack/stack_machine.h"

namespace ptkit::tables::calls {

class FrameRegroup {
 public:
  // For ids below `frames`.
  FrameRegroup(const FrameIndex& notes, FrameGroups& groups, Tails tails, std::size_t frames);

  // Tails::REPLACED: all frames, before the first put().
  void find_tail(const Frame& frame);
  // Sets the frame's group, and what depends on it.
  void put(Frame& frame, trace::SpaceId space);

 private:
  // Frames of one group in one segment.
  struct Use {
    std::uint64_t instructions = 0;
    std::uint64_t branches = 0;
    std::uint32_t open = 0;
  };
  struct Open {
    std::uint64_t id = 0;
    std::uint32_t group = 0;
    bool has_ended = false;  // it jumped to the next one
  };
  struct Segment {
    std::vector<Open> path;  // open frames, outermost first
    std::uint64_t caller = 0;
    bool has_caller = false;  // the outermost frame is known to return to the frame `caller`
  };
  // Code that a function jumped to, and all that was executed from there on.
  struct Tail {
    StreamPosition begin;
    std::uint64_t instructions = 0;
    std::uint64_t branches = 0;
    OffCpuTime off_cpu;
    bool time_known = false;
    bool any = false;
  };

  [[nodiscard]] Use& use_of(std::uint32_t segment, std::uint32_t group) {
    constexpr unsigned kHalf = 32;
    return uses_[std::uint64_t{segment} << kHalf | group];
  }
  // A function that jumps far does not end there: see NearBranches::push_tail().
  [[nodiscard]] bool is_tail(const Frame& frame) const noexcept {
    return frame.how == CallKind::TAIL && (frame.flags & FRAME_PARENT) != 0 && frame.parent < frame.id &&
           !notes_.is_far(frame.id);
  }
  void note_tail(std::uint64_t id, const Frame& frame);
  void pop(std::uint32_t number, Segment& segment);
  void end_path(std::uint32_t number, Segment& segment);
  void end_at_jump(Frame& frame) const;

  const FrameIndex& notes_;
  FrameGroups& groups_;
  Tails mode_;
  std::vector<std::uint32_t> segment_of_;  // by id
  std::vector<Tail> tails_;                // by id
  std::vector<std::uint64_t> inlined_in_;  // by id: 1 + parent of the frame of an inlined call
  std::unordered_map<std::uint32_t, Segment> segments_;
  std::unordered_map<std::uint64_t, Use> uses_;
};

}  // namespace ptkit::tables::calls
