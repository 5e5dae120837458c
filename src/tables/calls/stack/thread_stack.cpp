#include "tables/calls/stack/thread_stack.h"

#include <algorithm>

namespace ptkit::tables::calls {

std::uint64_t ThreadStack::bytes() const noexcept {
  return frames_.capacity() * sizeof(OpenFrame) + inlined_.capacity() * sizeof(Inlined) +
         visits_.capacity() * sizeof(Visit) + marks_.capacity() * sizeof(Mark) +
         stubs_.capacity() * sizeof(Stub) + off_cpu_.bytes() +
         (uses_[0].capacity() + uses_[1].capacity() + uses_[2].capacity()) * sizeof(Use);
}

// It is open no more.
void ThreadStack::uncount(const OpenFrame& frame) {
  --use_of(frame.function).open;
  if (groups_ == nullptr) return;
  const MoreGroups::Cell& cell = groups_->cell(frame.cell);
  for (std::size_t i = 0; i < kMoreGroups; ++i) --use_of(cell.groups[i], 1 + i).open;
}

// Where control comes back to the code of a call, the last execution goes on, unless the call begins again.
// One that begins where it has begun already, without a branch since, is mixed with other code.
void ThreadStack::open_inlined(const OpenFrame& frame, std::uint32_t call, bool begins) {
  if (call >= visits_.size()) visits_.resize(std::max<std::size_t>(call + 1, visits_.size() * 2));
  Visit last = visits_[call];
  if (last.function != top().id) last = {};
  const bool is_rest =
      last.function == top().id && (!begins || !last.has_begun || last.branches == frame.begin.branches);
  const Below under = below();
  inlined_.push_back({frame, last, call, frames_.size(), begins});
  Inlined& opened = inlined_.back();
  enter(opened.frame, under);
  opened.visit.function = top().id;
  opened.visit.has_begun = begins || (is_rest && last.has_begun);
  opened.visit.id = opened.frame.id;
  if (!is_rest) return;
  opened.frame.continues = last.id;
  opened.frame.flags |= std::uint16_t{FRAME_CONTINUES};
}

void ThreadStack::close_inlined(CallEnd how, const StreamPosition& end) {
  OpenFrame open = inlined_.back().frame;
  mark_undecided(open, frames_.size() - 1);
  Visit& visit = visits_[inlined_.back().call];
  visit = inlined_.back().visit;
  if (inlined_.back().begins) visit.branches = end.branches;
  inlined_.pop_back();
  innermost().inner_instructions += end.instructions - open.begin.instructions;
  emit(open, how, end);
  off_cpu_.keep(innermost().off_cpu + 1);
}

void ThreadStack::doubt(std::size_t first) noexcept {
  doubt_begin_ = doubt_begin_ < doubt_end_ ? std::min(doubt_begin_, first) : first;
  doubt_end_ = frames_.size();
}

// A frame that ends: `index` in frames_.
void ThreadStack::mark_undecided(OpenFrame& open, std::size_t index) const noexcept {
  if (index >= doubt_begin_ && index < doubt_end_) open.doubt();
}

void ThreadStack::return_below(const OpenFrame& caller, const StreamPosition& end) {
  frames_.front().parent = ids_.next;
  frames_.front().flags |= std::uint16_t{FRAME_PARENT};
  pop_chain(CallEnd::RETURN, end);
  push_below(caller);
}

// Opens the caller of all frames of the segment, which have ended. It began with the segment.
void ThreadStack::push_below(OpenFrame frame) {
  frame.begin = segment_begin_;
  frame.depth = bottom_depth_ - 1;
  frame.inner_instructions = bare_since_.instructions - segment_begin_.instructions;
  if (window_.begin.instructions > segment_begin_.instructions)
    frame.outside_instructions = window_.begin.instructions - segment_begin_.instructions;
  frame.space = owner_.space;
  find_cell(frame);
  const Use& use = use_of(frame.function);
  frame.known_instructions = use.instructions;
  frame.known_branches = use.branches;
  for (std::size_t i = 0; groups_ != nullptr && i < kMoreGroups; ++i) {
    const Use& other = use_of(groups_->cell(frame.cell).groups[i], 1 + i);
    frame.more[i].instructions = other.instructions;
    frame.more[i].branches = other.branches;
  }
  push(frame).off_cpu = off_cpu_.begin_at(segment_off_cpu_);
}

// Sets the shares that a frame that ends has by more groups.
void ThreadStack::share_more(const OpenFrame& open, Frame& frame) {
  frame.cell = open.cell;
  const MoreGroups::Cell& cell = groups_->cell(open.cell);
  for (std::size_t i = 0; i < kMoreGroups; ++i) {
    GroupShare& share = frame.more[i];
    share.is_recursive = open.more[i].is_recursive;
    if (!share.is_recursive) {
      share.new_instructions = frame.instructions - open.more[i].instructions;
      share.new_branches = frame.branches - open.more[i].branches;
    }
    Use& use = use_of(cell.groups[i], 1 + i);
    --use.open;
    use.instructions += share.new_instructions;
    use.branches += share.new_branches;
  }
}

void ThreadStack::emit(const OpenFrame& open, CallEnd how, const StreamPosition& end) {
  Frame frame;
  frame.id = open.id;
  frame.parent = open.parent;
  frame.entry_ip = open.entry_ip;
  frame.import_ip = open.import_ip;
  frame.call_ip = open.call_ip;
  frame.return_ip = open.return_ip;
  frame.continues = open.continues;
  const bool is_open_before = began_before_window(open);
  frame.begin = is_open_before ? window_.begin : open.begin;
  frame.instructions = end.instructions - frame.begin.instructions;
  frame.self_instructions =
      frame.instructions -
      (std::max(open.inner_instructions, open.outside_instructions) - open.outside_instructions);
  frame.branches = end.branches - frame.begin.branches;
  frame.end = end;
  frame.off_cpu = is_open_before ? off_cpu_.sum().without(window_.off_cpu) : off_cpu_.since(open.off_cpu);
  frame.segment = segment_;
  frame.function = open.function;
  frame.group = open.function;
  frame.depth = open.depth;
  frame.how = open.how;
  frame.end_how = how;
  frame.flags = open.flags;
  frame.inline_level = open.inline_level;
  frame.is_far = (open.open & OPEN_FAR) != 0;
  // A function begins with its first instruction. Imported ones have none in the trace: the branch to them is
  // their begin.
  const bool has_code = open.function >= kFirstFunction && (open.flags & FRAME_IMPORT) == 0;
  const bool began_before =
      is_open_before && !(has_code && open.begin.instructions == window_.begin.instructions);
  const bool ends_after = ids_.is_ending && how == CallEnd::END;
  if (ends_after) frame.flags |= std::uint16_t{FRAME_ENDS_AFTER};
  if (began_before)
    frame.flags = static_cast<std::uint16_t>((frame.flags & ~FRAME_BEGIN_SEEN) | FRAME_BEGINS_BEFORE);
  // Control flow is not known before its first instruction was executed.
  const bool is_cut = how == CallEnd::GAP || how == CallEnd::END;
  if (is_cut && frame.instructions == 0 && has_code && !off_cpu_.ended_off())
    frame.flags &= static_cast<std::uint16_t>(~FRAME_BEGIN_SEEN);
  if (frame.begin.time_known) frame.flags |= std::uint16_t{FRAME_TIME_KNOWN};
  if (end.time_known) frame.flags |= std::uint16_t{FRAME_END_TIME_KNOWN};
  if ((open.flags & FRAME_RECURSIVE) == 0) {
    frame.new_instructions = frame.instructions - open.known_instructions;
    frame.new_branches = frame.branches - open.known_branches;
  }
  Use& use = use_of(open.function);
  --use.open;
  use.instructions += frame.new_instructions;
  use.branches += frame.new_branches;
  if (groups_ != nullptr) share_more(open, frame);
  frame.is_outside = ids_.is_before || (ends_after && frame.instructions == 0 && has_code && !began_before);
  if (frame.is_outside) frame.self_instructions = 0;
  if (ids_.gives_callers && frames_.size() > 1) {
    frame.callers = frames_.data();
    frame.callers_size = frames_.size() - 1;
  }
  // The thread may have gone to another address space since: its function and its group are those of this
  // one.
  Owner owner = owner_;
  owner.space = open.space;
  sink_.on_frame(frame, owner);
}

void ThreadStack::pop(CallEnd how, const StreamPosition& end) {
  while (has_inlined()) close_inlined(how, end);
  OpenFrame& open = frames_.back();
  mark_undecided(open, frames_.size() - 1);
  emit(open, how, end);
  const std::uint64_t instructions = end.instructions - open.begin.instructions;
  const std::int32_t depth = open.depth;
  frames_.pop_back();
  doubt_end_ = std::min(doubt_end_, frames_.size());
  drop_stubs();
  while (!marks_.empty() && marks_.back().frame >= frames_.size()) marks_.pop_back();
  if (frames_.empty()) {
    bare_since_ = end;
    bottom_depth_ = depth;
  } else {
    innermost().inner_instructions += instructions;
  }
  last_end_ = how;
  off_cpu_.keep(frames_.empty() ? 0 : innermost().off_cpu + 1);
}

void ThreadStack::pop_chain(CallEnd how, const StreamPosition& end) {
  const std::uint32_t tails = top().tails;
  pop(how, end);
  for (std::uint32_t i = 0; i < tails && !frames_.empty(); ++i) pop(CallEnd::TAIL, end);
}

void ThreadStack::pop_to(std::size_t size, CallEnd how, const StreamPosition& end, bool exact) {
  while (frames_.size() > size) {
    if (!exact) innermost().flags &= static_cast<std::uint16_t>(~FRAME_EXACT);
    if (has_inlined()) {
      close_inlined(how, end);
    } else {
      pop(how, end);
    }
  }
}

bool ThreadStack::cancel() {
  if (frames_.size() < 2 || top().id + 1 != ids_.next) return false;
  --ids_.next;
  ids_.cancelled = std::min(ids_.cancelled, ids_.next);
  ids_.first_inside = std::min(ids_.first_inside, ids_.next);
  uncount(top());
  // Instructions that it has executed are of the frame below.
  const std::uint64_t begin = top().begin.instructions;
  const std::uint64_t before = std::max(window_.begin.instructions, begin) - begin;
  frames_.pop_back();
  innermost().outside_instructions -= std::min(innermost().outside_instructions, before);
  drop_stubs();
  doubt_end_ = std::min(doubt_end_, frames_.size());
  return true;
}

// Those of frames that have ended.
void ThreadStack::drop_stubs() noexcept {
  while (!stubs_.empty() && stubs_.back().size > frames_.size()) stubs_.pop_back();
}

void ThreadStack::enter_stub(const Stub& stub) {
  stubs_.push_back(stub);
  stubs_.back().size = frames_.size();
}

Stub ThreadStack::leave_stub() {
  const Stub stub = stubs_.back();
  stubs_.pop_back();
  return stub;
}

void ThreadStack::begin_segment(const StreamPosition& begin) noexcept {
  segment_ = ++ids_.segment;
  segment_begin_ = bare_since_ = begin;
  segment_off_cpu_ = off_cpu_.sum();
  off_cpu_.begin_again();
  bottom_depth_ = 0;
}

void ThreadStack::begin_window(const StreamPosition& begin) {
  off_cpu_.sum_up_to(begin);
  window_ = {begin, off_cpu_.sum()};
  ids_.first_inside = ids_.next;
  std::uint64_t above = begin.instructions;  // where the frame above begins
  std::size_t inlined = inlined_.size();
  const auto pass = [&](OpenFrame& frame) {
    frame.outside_instructions = frame.inner_instructions + begin.instructions - above;
    frame.known_instructions = frame.known_branches = 0;
    for (KnownShare& share : frame.more) share.instructions = share.branches = 0;
    above = frame.begin.instructions;
  };
  for (std::size_t size = frames_.size(); size > 0; --size) {
    while (inlined > 0 && inlined_[inlined - 1].size == size) pass(inlined_[--inlined].frame);
    pass(frames_[size - 1]);
  }
  for (std::vector<Use>& uses : uses_) {
    for (Use& use : uses) use.instructions = use.branches = 0;
  }
  if (frames_.empty()) bare_since_ = begin;
}

void ThreadStack::add_ids(std::vector<std::uint64_t>& ids) const {
  for (const OpenFrame& frame : frames_) ids.push_back(frame.id);
  for (const Inlined& inlined : inlined_) ids.push_back(inlined.frame.id);
}

void ThreadStack::mark(std::uint64_t ip) {
  const std::size_t frame = frames_.size() - 1;
  for (auto known = marks_.rbegin(); known != marks_.rend() && known->frame == frame; ++known) {
    if (known->ip != ip) continue;
    known->is_used = false;
    return;
  }
  marks_.push_back({ip, frame});
}

std::vector<std::size_t> ThreadStack::marked(std::uint64_t ip) const {
  constexpr std::size_t kMostMarks = 1U << 12U;
  const std::size_t least = marks_.size() - std::min(marks_.size(), kMostMarks);
  std::vector<std::size_t> found;
  bool has_first = false;
  for (std::size_t i = marks_.size(); i-- > least;) {
    const Mark& mark = marks_[i];
    if (mark.ip != ip) continue;
    const bool is_first = !mark.is_used && !has_first;
    found.insert(is_first ? found.begin() : found.end(), mark.frame);
    has_first = has_first || is_first;
  }
  return found;
}

void ThreadStack::use_mark(std::uint64_t ip) noexcept {
  for (auto mark = marks_.rbegin(); mark != marks_.rend() && mark->frame + 1 == frames_.size(); ++mark) {
    if (mark->ip == ip) mark->is_used = true;
  }
}

void ThreadStack::set_function(std::uint64_t entry_ip, std::uint32_t function) {
  OpenFrame& frame = top();
  uncount(frame);
  frame.entry_ip = entry_ip;
  frame.function = function;
  frame.flags |= std::uint16_t{FRAME_ENTRY};
  find_cell(frame);
  count(frame);
}

void ThreadStack::set_import(std::uint64_t import_ip, std::uint32_t function) {
  set_function(0, function);
  OpenFrame& frame = top();
  frame.import_ip = import_ip;
  frame.flags &= static_cast<std::uint16_t>(~FRAME_ENTRY);
  frame.flags |= std::uint16_t{FRAME_IMPORT};
}

}  // namespace ptkit::tables::calls
