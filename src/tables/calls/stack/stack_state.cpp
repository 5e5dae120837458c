// Call stacks in files.
#include <algorithm>
#include <utility>

#include "base/fields.h"
#include "base/member_count.h"
#include "tables/calls/stack/stack_machine.h"
#include "tables/calls/stack/state_fields.h"

namespace ptkit::tables::calls {
namespace {

template <typename Fields>
void length_fields(Fields& fields, Length& length) {
  fields(length.least);
  fields(length.most);
}

template <typename Fields>
void off_cpu_fields(Fields& fields, OffCpuTime& off_cpu) {
  length_fields(fields, off_cpu.untraced);
  length_fields(fields, off_cpu.switched);
  length_fields(fields, off_cpu.lost);
}

// Sums of a frame are counted from the begin of a window.
template <typename Fields>
void frame_fields(Fields& fields, OpenFrame& frame) {
  fields(frame.id);
  fields(frame.parent);
  fields(frame.entry_ip);
  fields(frame.call_ip);
  fields(frame.return_ip);
  fields(frame.import_ip);
  fields(frame.restart_ip);
  fields(frame.continues);
  fields(frame.inner_instructions);
  state_fields(fields, frame.begin);
  fields(frame.function);
  fields(frame.space);
  fields(frame.depth);
  fields(frame.tails);
  fields(frame.off_cpu);
  fields(frame.how, CallKind::RESUMED);
  fields(frame.flags);
  fields(frame.open);
}

template <typename Fields>
void stub_fields(Fields& fields, Stub& stub) {
  frame_fields(fields, stub.frame);
  fields(stub.inner_ip);
  fields(stub.size);
  fields(stub.step_flags);
  fields(stub.is_jump);
  fields(stub.is_own);
  fields(stub.is_linked);
}

// The fields above are all that there are, but for sums before a window, groups and inlined calls.
static_assert(base::kMemberCount<OpenFrame> == 24 && base::kMemberCount<Stub> == 7);

[[nodiscard]] bool is_good(const OpenFrame& frame, const StateLimits& limits) {
  return frame.function < limits.functions && frame.space < limits.spaces && frame.id < limits.frames &&
         frame.parent < limits.frames && frame.continues < limits.frames;
}

}  // namespace

template <typename Fields>
void OffCpuClock::fields_of_state(Fields& fields) {
  off_cpu_fields(fields, sum_);
  fields(version_);
  base::list_fields(fields, begins_, [&fields](Begin& begin) {
    off_cpu_fields(fields, begin.sum);
    fields(begin.version);
  });
  fields(since_.earliest);
  fields(since_.latest);
  fields(since_.known);
  fields(is_off_);
  fields(ended_off_);
  fields(is_left_);
}

template <typename Fields>
void ThreadStack::fields_of_state(Fields& fields) {
  state_fields(fields, owner_);
  base::list_fields(fields, frames_, [&fields](OpenFrame& frame) { frame_fields(fields, frame); });
  base::list_fields(fields, marks_, [&fields](Mark& mark) {
    fields(mark.ip);
    fields(mark.frame);
    fields(mark.is_used);
  });
  base::list_fields(fields, stubs_, [&fields](Stub& stub) { stub_fields(fields, stub); });
  fields(segment_);
  state_fields(fields, segment_begin_);
  off_cpu_.fields_of_state(fields);
  off_cpu_fields(fields, segment_off_cpu_);
  state_fields(fields, bare_since_);
  fields(bottom_depth_);
  fields(doubt_begin_);
  fields(doubt_end_);
  fields(last_end_, CallEnd::END);
}

// Each frame is that of a caller, or the one at the bottom.
bool ThreadStack::take_up(const StateLimits& limits) {
  if (owner_.space >= limits.spaces || doubt_end_ > frames_.size()) return false;
  for (std::size_t i = 0; i < frames_.size(); ++i) {
    OpenFrame& frame = frames_[i];
    const bool has_parent = (frame.flags & FRAME_PARENT) != 0;
    if (!is_good(frame, limits) || frame.tails > i || frame.off_cpu >= off_cpu_.begins()) return false;
    if (has_parent != (i != 0)) return false;
    if (i != 0 && (frame.parent != frames_[i - 1].id || frame.off_cpu < frames_[i - 1].off_cpu)) return false;
    const bool is_recursive = (frame.flags & FRAME_RECURSIVE) != 0;
    find_cell(frame);
    count(frame);
    if (is_recursive != ((frame.flags & FRAME_RECURSIVE) != 0)) return false;
  }
  const auto is_marked = [this](const Mark& mark) { return mark.frame < frames_.size(); };
  const auto is_left = [this, &limits](const Stub& stub) {
    return stub.size <= frames_.size() && is_good(stub.frame, limits);
  };
  return std::ranges::all_of(marks_, is_marked) && std::ranges::is_sorted(marks_, {}, &Mark::frame) &&
         std::ranges::all_of(stubs_, is_left) && std::ranges::is_sorted(stubs_, {}, &Stub::size);
}

template <typename Fields>
void GapFrames::fields_of_state(Fields& fields) {
  base::list_fields(fields, frames_, [&fields](Ended& frame) {
    fields(frame.id);
    fields(frame.return_ip);
  });
  fields(matched_);
}

namespace {

template <typename Fields>
void thread_fields(Fields& fields, Thread& thread) {
  thread.stack.fields_of_state(fields);
  thread.gap_frames.fields_of_state(fields);
  state_fields(fields, thread.left);
  base::optional_fields(fields, thread.executed, [&fields](Owner& owner) { state_fields(fields, owner); });
  fields(thread.off, Thread::Off::ASYNC);
  fields(thread.async_ip);
  fields(thread.returning);
  fields(thread.counts.instructions);
  fields(thread.counts.branches);
  fields(thread.counts.other_instructions);
  fields(thread.counts.other_branches);
  fields(thread.stack_number);
  fields(thread.resumed_by);
  fields(thread.is_scheduler);
  fields(thread.begun);
}

template <typename Fields>
void key_fields(Fields& fields, ThreadKey& key) {
  fields(key.first);
  fields(key.second);
}

static_assert(base::kMemberCount<ThreadCounts> == 4 && base::kMemberCount<CurrentState> == 5 &&
              base::kMemberCount<SuspendedState> == 4 && base::kMemberCount<ThreadsState> == 2);

}  // namespace

template <typename Fields>
void StackMachine::fields_of_state(Fields& fields) {
  CurrentState& current = current_.state();
  fields(current.ids.next);
  fields(current.ids.segment);
  fields(suspended_.state().numbers);
  fields(current.has_unseen_stacks);
  fields(suspended_.state().jumps_to_stacks);
  key_fields(fields, current.key);
  state_fields(fields, current.owner);
  fields(threads_.state().left);
  fields(current.search);
}

bool StackMachine::save(base::FieldWriter& fields) {
  auto& threads = threads_.state().threads;
  const auto current = threads.find(current_.key());
  const bool is_kept = current != threads.end() && current->second.get() == &current_.thread();
  const bool waits = waiting_.is_open() || waiting_.is_replaying();
  if (waits || current_.code().inlines() != nullptr || has_ended_ || !is_kept) return false;
  fields_of_state(fields);
  SuspendedState& suspended = suspended_.state();
  std::vector<std::uint32_t> switchers(suspended.switchers.begin(), suspended.switchers.end());
  std::ranges::sort(switchers);
  base::list_fields(fields, switchers, [&fields](std::uint32_t& function) { fields(function); });
  fields(std::uint64_t{threads.size()});
  for (auto& [key, thread] : threads) {
    ThreadKey written = key;
    key_fields(fields, written);
    thread_fields(fields, *thread);
  }
  base::list_fields(fields, suspended.stacks, [&fields](SuspendedStack& one) {
    key_fields(fields, one.key);
    fields(one.resume_ip);
    thread_fields(fields, *one.thread);
  });
  return true;
}

bool StackMachine::restore(base::FieldReader& fields, const StateLimits& limits) {
  auto& threads = threads_.state().threads;
  threads.clear();
  fields_of_state(fields);
  SuspendedState& suspended = suspended_.state();
  std::vector<std::uint32_t> switchers;
  base::list_fields(fields, switchers, [&fields](std::uint32_t& function) { fields(function); });
  suspended.switchers.insert(switchers.begin(), switchers.end());
  const auto read_thread = [this, &fields] {
    auto thread = current_.new_thread({});
    thread_fields(fields, *thread);
    return thread;
  };
  std::uint64_t count = 0;
  fields(count);
  for (std::uint64_t i = 0; i < count && fields.good(); ++i) {
    ThreadKey key;
    key_fields(fields, key);
    threads[key] = read_thread();
  }
  base::list_fields(fields, suspended.stacks, [&fields, &read_thread](SuspendedStack& one) {
    key_fields(fields, one.key);
    fields(one.resume_ip);
    one.thread = read_thread();
    one.thread->stack.off_cpu().set_suspended();
  });
  const auto current = threads.find(current_.key());
  const bool is_known = current != threads.end() && current_.owner().space < limits.spaces;
  if (!fields.good() || !is_known || current_.ids().next > limits.frames) return false;
  current_.use(current->second, current_.key(), current_.owner());
  return take_up(limits);
}

bool StackMachine::take_up(StateLimits limits) {
  limits.frames = current_.ids().next;
  const auto is_good = [&limits](Thread& thread) {
    const bool has_space = !thread.executed || thread.executed->space < limits.spaces;
    return thread.gap_frames.is_within(limits) && has_space &&
           thread.stack.size() <= CurrentStack::kMostFrames && thread.stack.take_up(limits);
  };
  return suspended_.state().stacks.size() <= SuspendedStacks::kMostStacks &&
         std::ranges::all_of(threads_.state().threads,
                             [&is_good](auto& one) { return is_good(*one.second); }) &&
         std::ranges::all_of(suspended_.state().stacks,
                             [&is_good](SuspendedStack& one) { return is_good(*one.thread); });
}

}  // namespace ptkit::tables::calls
