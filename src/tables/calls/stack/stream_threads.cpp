#include "tables/calls/stack/stream_threads.h"

#include <algorithm>
#include <vector>

#include "base/addresses.h"
#include "ptkit/rtit_regs.h"

namespace ptkit::tables::calls {

TaskMoves::TaskMoves(const trace::TraceBundle& bundle, std::uint32_t stream) {
  const trace::Configuration& configuration = bundle.configuration;
  const bool has_kernel = configuration.rtit_ctl_known && (configuration.rtit_ctl >> PT_CTL_OS & 1U) != 0;
  const trace::Stream& own = bundle.streams[stream];
  if (!has_kernel || own.cpu == trace::kNoId) return;
  std::vector<std::int64_t> tids;
  for (const trace::Switch& one : own.switches) {
    if (one.tid > 0) tids.push_back(one.tid);
  }
  std::sort(tids.begin(), tids.end());
  tids.erase(std::unique(tids.begin(), tids.end()), tids.end());
  for (const trace::Stream& other : bundle.streams) {
    if (&other == &own || other.cpu == own.cpu) continue;
    for (const trace::Switch& one : other.switches) {
      if (one.tsc != 0 && std::binary_search(tids.begin(), tids.end(), one.tid))
        arrivals_.emplace_back(one.tid, one.tsc);
    }
  }
  std::sort(arrivals_.begin(), arrivals_.end());
}

bool TaskMoves::was_elsewhere(std::int64_t tid, std::uint64_t from, std::uint64_t until) const {
  const auto next = std::upper_bound(arrivals_.begin(), arrivals_.end(), std::pair{tid, from});
  return next != arrivals_.end() && next->first == tid && next->second < until;
}

void StreamThreads::enter(const Owner& owner, const StreamPosition& position) {
  const ThreadKey key = key_of(owner);
  std::unique_ptr<Thread>& thread = state_.threads[key];
  const bool is_new = thread == nullptr;
  if (is_new) thread = current_.new_thread(owner);
  state_.left = false;
  current_.use(thread, key, owner);
  if (!is_new && position.time_known) end_moved(position.tsc + position.tsc_error / 2);
  stack().off_cpu().come_back(position);
  thread->counts.resume(position);
  const bool is_known = owner.tid != trace::kNoId;
  if (!is_new && stack().owner().space != owner.space && is_known) change_program(position);
  if (!thread->executed) stack().set_owner(owner);
  current_.code().leave_space();
}

// exec(). Where the kernel is traced, its own frames end where it returns to the new program.
void StreamThreads::change_program(const StreamPosition& position) {
  suspended_.end_of(current_.key(), position);
  Thread& thread = current_.thread();
  if (!stack().empty() && stack().top().entry_ip >= base::kKernelHalf) {
    if (!thread.executed) thread.executed = stack().owner();
    return;
  }
  thread.executed.reset();
  if (stack().empty()) return;
  current_.end_thread(current_.local(position));
}

void StreamThreads::leave(const StreamPosition& position) {
  Thread& thread = current_.thread();
  thread.left = current_.local(position);
  thread.counts.pause(thread.left);
  stack().off_cpu().leave(position);
  state_.left = true;
}

void StreamThreads::cut(const StreamPosition& last, const StreamPosition& position) {
  Thread& thread = current_.thread();
  suspended_.doubt_all();
  current_.state().has_unseen_stacks = true;
  stack().off_cpu().lose(last, current_.local(position));
  thread.gap_frames.cut(stack());
  current_.end_all(CallEnd::GAP, current_.local(position));
  thread.executed.reset();
  stack().set_owner(current_.owner());
  thread.begun = false;
  thread.off = Thread::Off::NONE;
}

void StreamThreads::finish(const StreamPosition& position) {
  for (auto& [key, thread] : state_.threads) end_thread(thread, position);
  if (suspended_.shares_stacks()) suspended_.doubt_all();
  for (SuspendedStack& one : suspended_.state().stacks) end_thread(one.thread, position);
}

void StreamThreads::begin_window(const StreamPosition& position) {
  const std::unique_ptr<Thread>* const current = &current_.slot();
  const Owner owner = current_.owner();
  const ThreadKey key = current_.key();
  for (auto& [unused, thread] : state_.threads) {
    if (&thread != current || state_.left) begin_window_of(thread, position);
  }
  for (SuspendedStack& one : suspended_.state().stacks) begin_window_of(one.thread, position);
  current_.use(state_.threads[key], key, owner);
  if (!state_.left) stack().begin_window(current_.local(position));
  current_.ids().is_before = false;
  std::vector<std::uint64_t> open;
  for (const auto& [unused, thread] : state_.threads) thread->stack.add_ids(open);
  for (const SuspendedStack& one : suspended_.state().stacks) one.thread->stack.add_ids(open);
  std::ranges::sort(open);
  current_.sink().on_window(open, current_.ids().next);
}

// Of a thread or a stack that is not executed.
void StreamThreads::begin_window_of(std::unique_ptr<Thread>& thread, const StreamPosition& position) {
  const Owner owner = thread->stack.owner();
  current_.use(thread, key_of(owner), owner);
  if (position.time_known) end_moved(position.tsc);
  stack().begin_window(thread->counts.paused(position));
}

void StreamThreads::end_thread(std::unique_ptr<Thread>& thread, const StreamPosition& position) {
  const Owner owner = thread->stack.owner();
  current_.use(thread, key_of(owner), owner);
  end_moved(UINT64_MAX);
  stack().off_cpu().finish(position);
  const StreamPosition end = thread->counts.paused(position);
  if (stack().empty() && end.instructions != stack().bare_since().instructions) current_.push_unknown();
  current_.end_all(CallEnd::END, end);
}

// The thread has left the kernel in the stream of another processor: its frames in this stream do not go on.
void StreamThreads::end_moved(std::uint64_t until) {
  Thread& thread = current_.thread();
  const StreamPosition& left = thread.left;
  if (moves_ == nullptr || !left.time_known || stack().empty()) return;
  if (stack().top().entry_ip < base::kKernelHalf) return;
  if (!moves_->was_elsewhere(current_.key().second, left.tsc + left.tsc_error / 2, until)) return;
  current_.end_all(CallEnd::SWITCH, left);
  thread.executed.reset();
  thread.begun = false;
}

std::size_t StreamThreads::above_scheduler() const noexcept {
  constexpr std::size_t kMostAbove = 64;  // frames above the scheduler
  const ThreadStack& stack = current_.stack();
  for (std::size_t i = stack.size(); i > 0 && stack.size() - i < kMostAbove; --i) {
    if ((stack.at(i - 1).open & OPEN_SCHEDULER) != 0) return i;
  }
  return 0;
}

}  // namespace ptkit::tables::calls
