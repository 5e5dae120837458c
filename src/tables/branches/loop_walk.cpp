#include "tables/branches/loop_walk.h"

#include <utility>

#include "tables/columns/request.h"

namespace ptkit::tables::branches {

using calls::BranchStep;
using flow::BranchKind;

namespace {

// The instruction at from_ip is executed.
[[nodiscard]] bool is_executed(BranchKind kind) noexcept {
  return kind != BranchKind::ASYNC && kind != BranchKind::TX_ABORT;
}

}  // namespace

void LoopWalk::before_row(const BranchStep& row, std::uint8_t kind, calls::StackMachine& machine,
                          const calls::Owner& owner) {
  if (const std::uint64_t first = machine.cancelled(); first != UINT64_MAX) [[unlikely]]
    cancel(first);
  const bool is_branch = kind < columns::MARK_ENABLED;
  if (is_active_ && !machine.has_ended()) {
    const calls::ThreadStack& stack = machine.current();
    const bool is_known = is_branch && row.from_known() && !stack.empty() && !stack.in_stub() &&
                          kind != static_cast<std::uint8_t>(BranchKind::UNKNOWN);
    watcher_.on_row(row, kind, is_known ? follow(row, stack.top().id, owner.space) : nullptr, owner);
  }
  if (is_branch || kind == columns::MARK_ENABLED || kind == columns::MARK_STATUS ||
      kind == columns::MARK_GAP) {
    ip_known_ = row.to_known();
    ip_ = row.to_ip;
  } else if (kind != columns::MARK_CONTEXT && kind != columns::MARK_LIMIT) {
    ip_known_ = false;
  }
}

// What the code up to a branch, and the branch itself, do with the loops of a frame.
Visit* LoopWalk::follow(const BranchStep& row, std::uint64_t frame, trace::SpaceId space) {
  const Run& run = run_to(row.from_ip, is_executed(row.kind), space);
  if (!run.is_known) return nullptr;
  if (frame != current_id_) {
    const auto found = frames_.find(frame);
    current_ = found == frames_.end() ? nullptr : &found->second;
    current_id_ = frame;
  }
  if (current_ == nullptr) {
    if ((run.end_loop == kNoLoop || !run.has_last) && run.heads.empty()) return nullptr;
    current_ = &frames_[frame];
    current_->function = run.function;
  }
  if (current_->visits.empty()) current_->function = run.function;
  // Stubs and parts of other functions run in the frame of the function that led to them.
  if (current_->function != run.function) return nullptr;
  if (!ip_known_) {
    for (Visit& visit : current_->visits) {
      visit.is_whole = false;
      visit.path = 0;
    }
  }
  // Nothing is known of an instruction that is not executed: it is where control flow comes back to.
  if (run.has_last || run.first != run.last) leave_outside(*current_, run.begin_loop);
  for (const LoopMap::Head& head : run.heads) arrive(*current_, head.loop);
  if (run.has_last) {
    leave_outside(*current_, run.end_loop);
    enter_missing(*current_, run.end_loop);
  }
  return current_->visits.empty() ? nullptr : &current_->visits.back();
}

const LoopWalk::Run& LoopWalk::run_to(std::uint64_t ip, bool has_last, trace::SpaceId space) {
  const std::uint64_t first = ip_known_ ? ip_ : ip;
  constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  const std::uint64_t hash = (first * 3 + ip + space) * kGoldenRatio;
  Run& run = facts_[static_cast<std::size_t>(hash >> 32U) % kFacts];
  if (run.first == first && run.last == ip && run.space == space && run.has_last == has_last &&
      run.has_first == ip_known_)
    return run;
  run = {.first = first, .last = ip, .space = space, .has_last = has_last, .has_first = ip_known_};
  const LoopCode* const end = map_.at(space, ip);
  const LoopCode* const begin = first == ip ? end : map_.at(space, first);
  if (end == nullptr || begin == nullptr || begin->function != end->function) return run;
  run.is_known = true;
  run.function = end->function;
  run.begin_loop = begin->loop;
  run.end_loop = end->loop;
  if (ip_known_) run.heads = map_.heads(space, first, has_last ? ip + 1 : ip);
  return run;
}

void LoopWalk::arrive(Frame& frame, std::int32_t loop) {
  leave_outside(frame, loop);
  if (!frame.visits.empty() && frame.visits.back().loop == loop) {
    Visit& visit = frame.visits.back();
    watcher_.on_round(visit);
    ++visit.rounds;
    return;
  }
  enter_missing(frame, map_.loop(loop).outer);
  enter(frame, loop, true);
}

// Leaves the loops that another loop, or code of none, is not in.
void LoopWalk::leave_outside(Frame& frame, std::int32_t loop) {
  while (!frame.visits.empty() && !map_.is_within(loop, frame.visits.back().loop)) {
    watcher_.on_leave(frame.visits.back());
    frame.visits.pop_back();
  }
}

// Control flow is in a loop of which the head was not seen.
void LoopWalk::enter_missing(Frame& frame, std::int32_t loop) {
  if (loop == kNoLoop || (!frame.visits.empty() && frame.visits.back().loop == loop)) return;
  enter_missing(frame, map_.loop(loop).outer);
  enter(frame, loop, false);
}

void LoopWalk::enter(Frame& frame, std::int32_t loop, bool is_whole) {
  frame.visits.push_back(
      {.number = visits_++, .rounds = is_whole ? 1U : 0U, .loop = loop, .is_whole = is_whole});
  const std::size_t size = frame.visits.size();
  watcher_.on_enter(frame.visits.back(), size > 1 ? &frame.visits[size - 2] : nullptr);
}

void LoopWalk::end(Frame& frame, bool is_known) {
  for (; !frame.visits.empty(); frame.visits.pop_back()) {
    Visit& visit = frame.visits.back();
    visit.is_whole = visit.is_whole && is_known;
    watcher_.on_leave(visit);
  }
}

void LoopWalk::on_frame(const calls::Frame& frame, const calls::Owner&) {
  if (frame.id == current_id_) current_id_ = UINT64_MAX;
  if (frames_.empty()) return;
  const auto found = frames_.find(frame.id);
  if (found == frames_.end()) return;
  using calls::CallEnd;
  const bool is_cut = frame.end_how == CallEnd::GAP || frame.end_how == CallEnd::END ||
                      frame.end_how == CallEnd::ABORT || frame.end_how == CallEnd::SWITCH ||
                      (frame.flags & (calls::FRAME_UNDECIDED | calls::FRAME_ENDS_AFTER)) != 0;
  end(found->second, !is_cut);
  frames_.erase(found);
}

// Frames from this number on never were.
void LoopWalk::cancel(std::uint64_t first) {
  current_id_ = UINT64_MAX;
  for (auto frame = frames_.begin(); frame != frames_.end();) {
    if (frame->first >= first) {
      end(frame->second, false);
      frame = frames_.erase(frame);
    } else {
      ++frame;
    }
  }
}

}  // namespace ptkit::tables::branches
