#include "tables/calls/stack/inlined_frames.h"

#include <algorithm>
#include <utility>

namespace ptkit::tables::calls {

using flow::BranchKind;

void InlinedFrames::begin_run(std::uint64_t ip, const StreamPosition& position) {
  run_ = {};
  run_.begin = position;
  run_.ip = ip;
  run_.is_open = true;
}

void InlinedFrames::run_to_branch(const BranchStep& step) {
  const bool is_executed = step.kind != BranchKind::ASYNC && step.kind != BranchKind::TX_ABORT;
  end_run(step.position, step.from_known() && is_executed ? step.from_ip : 0, is_executed);
  begin_run(step.to_ip, is_executed ? after_branch(step.position) : step.position);
  run_.kind = step.kind;
  run_.flags = step.flags;
  run_.is_open = step.to_known();
  run_.after_branch = true;
}

void InlinedFrames::pause_run(const StreamPosition& position) {
  const bool is_open = run_.is_open;
  end_run(position);
  if (!is_open) return;
  run_.is_open = true;
  run_.paused = position;
  run_.done = count_in_run(position);
}

std::uint64_t InlinedFrames::count_in_run(const StreamPosition& end) const noexcept {
  const std::uint64_t first = run_.begin.stream_instructions;
  return std::max(end.stream_instructions, first) - first;
}

void InlinedFrames::end_run(const StreamPosition& end, std::uint64_t last_ip, bool executes_last) {
  InlineFacts* const inlines = current_.code().inlines();
  if (inlines == nullptr || !std::exchange(run_.is_open, false) || stack().empty()) return;
  // Code that calls into its own middle may turn out to be a thunk, of which no frame remains.
  if (current_.in_leaf() || (stack().top().open & OPEN_INNER) != 0 || stack().stub() != nullptr) return;
  const std::uint64_t count = count_in_run(end) + (executes_last ? 1 : 0);
  if (count == run_.done) return;
  current_.follow_code(end);
  const InlinePath& path = inlines->path(run_.ip, last_ip, count);
  for (std::size_t i = 0; i < path.changes.size() && path.changes[i].instruction < count; ++i) {
    const InlineChange& change = path.changes[i];
    if (i + 1 < path.changes.size() && path.changes[i + 1].instruction <= run_.done) continue;
    if (change.call != stack().inlined()) enter_inlined(change, position_in_run(change, end));
  }
}

// The time of an instruction lies between those of the rows before and after it.
StreamPosition InlinedFrames::position_in_run(const InlineChange& change,
                                              const StreamPosition& end) const noexcept {
  if (change.instruction <= run_.done) return current_.local(run_.done == 0 ? run_.begin : run_.paused);
  StreamPosition position = run_.begin;
  position.instructions += change.instruction;
  position.stream_instructions += change.instruction;
  position.branches += change.branches;
  position.offset = end.offset;
  position.time_known = position.time_known && end.time_known;
  const std::uint64_t latest = std::max(end.tsc + end.tsc_error, position.tsc);
  position.tsc_error = static_cast<std::uint32_t>(std::min<std::uint64_t>(latest - position.tsc, UINT32_MAX));
  return current_.local(position);
}

// How inlined calls end that control leaves there.
CallEnd InlinedFrames::end_of_inlined(const InlineChange& change) noexcept {
  if (change.instruction != 0 || !run_.after_branch) return CallEnd::RETURN;
  if (run_.kind == BranchKind::TX_ABORT) return CallEnd::ABORT;
  const CallEnd last = stack().take_last_end();
  return last == CallEnd::UNWIND || last == CallEnd::LONGJMP ? last : CallEnd::RETURN;
}

void InlinedFrames::enter_inlined(const InlineChange& change, const StreamPosition& position) {
  InlineFacts& inlines = *current_.code().inlines();
  const CallEnd how = end_of_inlined(change);
  std::uint32_t call = change.call;
  entered_.clear();
  for (std::uint32_t open = stack().inlined(); open != call; open = stack().inlined()) {
    const std::uint32_t open_level = inlines.call(open).level;
    const std::uint32_t level = inlines.call(call).level;
    if (open_level >= level) stack().close_inlined(how, position);
    if (level < open_level) continue;
    entered_.push_back(call);
    call = inlines.call(call).caller;
  }
  OpenFrame frame;
  frame.how = CallKind::INLINED;
  frame.entry_ip = change.ip;
  frame.begin = position;
  frame.flags = FRAME_ENTRY;
  if (change.instruction != 0 || run_.after_branch) frame.flags |= FRAME_EXACT | FRAME_BEGIN_SEEN;
  if (run_.after_branch && (run_.flags & flow::IN_TX) != 0) frame.flags |= FRAME_IN_TX;
  for (std::size_t i = entered_.size(); i-- > 0;) {
    if (stack().inlined_size() >= CurrentStack::kMostFrames) return;
    const std::uint32_t one = entered_[i];
    const InlinedCall& found = inlines.call(one);
    frame.function = found.function;
    frame.inline_level = static_cast<std::uint8_t>(found.level);
    stack().open_inlined(frame, one, inlines.begins_at(one, change.ip));
  }
}

}  // namespace ptkit::tables::calls
