#include "calls/thread_stack.h"

#include <algorithm>

namespace ptkit::calls {

ThreadStack::Use& ThreadStack::use_of(std::uint32_t group) {
  if (group >= uses_.size()) uses_.resize(std::max<std::size_t>(group + 1, uses_.size() * 2));
  Use& use = uses_[group];
  if (use.segment != segment_) {
    use.segment = segment_;
    use.instructions = use.branches = 0;
  }
  return use;
}

std::uint32_t ThreadStack::group_of(const OpenFrame& frame) {
  return groups_ == nullptr ? frame.function : groups_->of(frame.function, frame.entry_ip, owner_.space);
}

OpenFrame& ThreadStack::push(const OpenFrame& frame) {
  frames_.push_back(frame);
  OpenFrame& top = frames_.back();
  top.id = ids_.next++;
  if (frames_.size() > 1) {
    const OpenFrame& below = frames_[frames_.size() - 2];
    top.parent = below.id;
    top.depth = below.depth + 1;
    top.flags |= std::uint16_t{FRAME_PARENT};
  }
  top.group = group_of(top);
  Use& use = use_of(top.group);
  if (use.open++ != 0) top.flags |= std::uint16_t{FRAME_RECURSIVE};
  return top;
}

void ThreadStack::return_below(const OpenFrame& caller, const Place& end) {
  frames_.front().parent = ids_.next;
  frames_.front().flags |= std::uint16_t{FRAME_PARENT};
  pop_chain(EndHow::RETURN, end);
  push_below(caller);
}

// Opens the caller of all frames of the segment, which have ended. It began with the segment.
void ThreadStack::push_below(OpenFrame frame) {
  frame.begin = segment_begin_;
  frame.depth = bottom_depth_ - 1;
  frame.inner_instructions = bare_since_.instructions - segment_begin_.instructions;
  const Use& use = use_of(group_of(frame));
  frame.known_instructions = use.instructions;
  frame.known_branches = use.branches;
  static_cast<void>(push(frame));
}

void ThreadStack::emit(const OpenFrame& open, EndHow how, const Place& end) {
  Frame frame;
  frame.id = open.id;
  frame.parent = open.parent;
  frame.entry_ip = open.entry_ip;
  frame.call_ip = open.call_ip;
  frame.return_ip = open.return_ip;
  frame.continues = open.continues;
  frame.instructions = end.instructions - open.begin.instructions;
  frame.self_instructions = frame.instructions - open.inner_instructions;
  frame.branches = end.branches - open.begin.branches;
  frame.begin = open.begin;
  frame.end = end;
  frame.function = open.function;
  frame.group = open.group;
  frame.depth = open.depth;
  frame.how = open.how;
  frame.end_how = how;
  frame.flags = open.flags;
  if (open.begin.time_known) frame.flags |= std::uint16_t{FRAME_TIME_KNOWN};
  if (end.time_known) frame.flags |= std::uint16_t{FRAME_END_TIME_KNOWN};
  if ((open.flags & FRAME_RECURSIVE) == 0) {
    frame.new_instructions = frame.instructions - open.known_instructions;
    frame.new_branches = frame.branches - open.known_branches;
  }
  Use& use = use_of(open.group);
  --use.open;
  use.instructions += frame.new_instructions;
  use.branches += frame.new_branches;
  sink_.on_frame(frame, owner_);
}

void ThreadStack::pop(EndHow how, const Place& end) {
  const OpenFrame open = frames_.back();
  frames_.pop_back();
  while (!marks_.empty() && marks_.back().frame >= frames_.size()) marks_.pop_back();
  if (frames_.empty()) {
    bare_since_ = end;
    bottom_depth_ = open.depth;
  } else {
    frames_.back().inner_instructions += end.instructions - open.begin.instructions;
  }
  emit(open, how, end);
}

void ThreadStack::pop_chain(EndHow how, const Place& end) {
  const std::uint32_t tails = top().tails;
  pop(how, end);
  for (std::uint32_t i = 0; i < tails && !frames_.empty(); ++i) pop(EndHow::TAIL, end);
}

void ThreadStack::pop_to(std::size_t size, EndHow how, const Place& end, bool exact) {
  while (frames_.size() > size) {
    if (!exact) top().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
    pop(how, end);
  }
}

bool ThreadStack::cancel() {
  if (top().id + 1 != ids_.next) return false;
  --ids_.next;
  --use_of(top().group).open;
  frames_.pop_back();
  return true;
}

void ThreadStack::begin_segment(const Place& begin) noexcept {
  ++segment_;
  segment_begin_ = bare_since_ = begin;
  bottom_depth_ = 0;
}

void ThreadStack::mark(std::uint64_t ip) {
  const std::size_t frame = frames_.size() - 1;
  for (auto known = marks_.rbegin(); known != marks_.rend() && known->frame == frame; ++known) {
    if (known->ip == ip) return;
  }
  marks_.push_back({ip, frame});
}

bool ThreadStack::find_mark(std::uint64_t ip, Marked& found) const noexcept {
  bool any = false;
  for (std::size_t i = marks_.size(); i-- > 0;) {
    const Mark& mark = marks_[i];
    if (mark.ip != ip) continue;
    if (any) {
      found.is_unique = false;
      break;
    }
    found = {mark.frame, true};
    any = true;
  }
  return any;
}

void ThreadStack::set_function(std::uint64_t entry_ip, std::uint32_t function) {
  OpenFrame& frame = top();
  --use_of(frame.group).open;
  frame.entry_ip = entry_ip;
  frame.function = function;
  frame.flags = static_cast<std::uint16_t>((frame.flags | FRAME_ENTRY) & ~FRAME_RECURSIVE);
  frame.group = group_of(frame);
  if (use_of(frame.group).open++ != 0) frame.flags |= std::uint16_t{FRAME_RECURSIVE};
}

}  // namespace ptkit::calls
