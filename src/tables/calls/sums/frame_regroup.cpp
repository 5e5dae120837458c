#include "tables/calls/sums/frame_regroup.h"

namespace ptkit::tables::calls {

FrameRegroup::FrameRegroup(const FrameIndex& notes, FrameGroups& groups, Tails tails, std::size_t frames)
    : notes_(notes), groups_(groups), mode_(tails), segment_of_(frames) {
  if (tails != Tails::REPLACED) return;
  tails_.resize(frames);
  inlined_in_.resize(frames);
}

void FrameRegroup::find_tail(const Frame& frame) {
  if (frame.how == CallKind::INLINED && (frame.flags & FRAME_PARENT) != 0)
    inlined_in_[frame.id] = frame.parent + 1;
  if (!is_tail(frame)) {
    // Control that comes to another function without a return of the one that was jumped to: none of this is
    // of the function that jumped.
    const bool is_above = frame.how != CallKind::INLINED && (frame.flags & FRAME_PARENT) != 0;
    if (is_above && frame.parent < frame.id && tails_[frame.parent].any) note_tail(frame.parent, frame);
    return;
  }
  // Inlined calls end with the function that jumps.
  std::uint64_t id = frame.parent;
  note_tail(id, frame);
  while (inlined_in_[id] != 0) {
    id = inlined_in_[id] - 1;
    note_tail(id, frame);
  }
}

// The frame `id` jumped to another function.
void FrameRegroup::note_tail(std::uint64_t id, const Frame& frame) {
  Tail& tail = tails_[id];
  if (!tail.any) {
    tail.begin = frame.begin;
    tail.time_known = (frame.flags & FRAME_TIME_KNOWN) != 0;
    tail.any = true;
  }
  tail.instructions += frame.instructions;
  tail.branches += frame.branches;
  tail.off_cpu.add(frame.off_cpu);
}

// A frame that jumped to another function ends there.
void FrameRegroup::end_at_jump(Frame& frame) const {
  const Tail& tail = tails_[frame.id];
  if (!tail.any) return;
  frame.instructions -= tail.instructions;
  frame.branches -= tail.branches;
  frame.off_cpu = frame.off_cpu.without(tail.off_cpu);
  frame.end = tail.begin;
  frame.flags &= static_cast<std::uint16_t>(~FRAME_END_TIME_KNOWN);
  if (tail.time_known) frame.flags |= FRAME_END_TIME_KNOWN;
}

void FrameRegroup::pop(std::uint32_t number, Segment& segment) {
  const Open open = segment.path.back();
  segment.path.pop_back();
  if (!open.has_ended) --use_of(number, open.group).open;
}

// The innermost frame has jumped, and so the function that it is inlined in.
void FrameRegroup::end_path(std::uint32_t number, Segment& segment) {
  for (std::size_t i = segment.path.size(); i-- > 0 && !segment.path[i].has_ended;) {
    segment.path[i].has_ended = true;
    --use_of(number, segment.path[i].group).open;
    if (inlined_in_[segment.path[i].id] == 0) return;
  }
}

void FrameRegroup::put(Frame& frame, trace::SpaceId space) {
  const FrameIndex::Bottom* const bottom = notes_.bottom_of(frame.id);
  const std::uint32_t number = bottom != nullptr ? bottom->segment : segment_of_[frame.parent];
  segment_of_[frame.id] = number;
  Segment& segment = segments_[number];
  while (!segment.path.empty() && (bottom != nullptr || segment.path.back().id != frame.parent))
    pop(number, segment);
  if (mode_ == Tails::REPLACED) {
    if (is_tail(frame) && !segment.path.empty() && !segment.path.back().has_ended) {
      end_path(number, segment);
    }
    end_at_jump(frame);
  }
  frame.group = groups_.of(frame.function, frame.entry_ip, space, frame.inline_level);
  frame.flags &= static_cast<std::uint16_t>(~FRAME_RECURSIVE);
  Use& use = use_of(number, frame.group);
  if (use.open++ != 0) {
    frame.flags |= FRAME_RECURSIVE;
  } else {
    // A caller that is found below frames of its group which have ended: see ThreadStack::push_below().
    const bool is_below = bottom != nullptr && segment.has_caller && segment.caller == frame.id;
    frame.new_instructions = frame.instructions - (is_below ? use.instructions : 0);
    frame.new_branches = frame.branches - (is_below ? use.branches : 0);
  }
  use.instructions += frame.new_instructions;
  use.branches += frame.new_branches;
  segment.path.push_back({frame.id, frame.group, false});
  if (bottom != nullptr) {
    segment.has_caller = (frame.flags & FRAME_PARENT) != 0;
    segment.caller = frame.parent;
  }
}

}  // namespace ptkit::tables::calls
