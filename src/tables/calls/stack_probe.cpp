#include "tables/calls/stack_probe.h"

#include <algorithm>

#include "tables/calls/frame_rows.h"

namespace ptkit::tables::calls {

using tables::columns::Batch;
using tables::columns::Column;

namespace {

constexpr unsigned kOfFrame = tables::columns::STACK_FRAME_KNOWN | tables::columns::STACK_ENTRY_KNOWN |
                              tables::columns::STACK_SYSCALL | tables::columns::STACK_INTERRUPT |
                              tables::columns::STACK_IMPORT;

// Flags of a frame.
template <typename AnyFrame>
[[nodiscard]] unsigned flags_of(const AnyFrame& frame) noexcept {
  unsigned flags = tables::columns::STACK_FRAME_KNOWN;
  if ((frame.flags & FRAME_ENTRY) != 0) flags |= tables::columns::STACK_ENTRY_KNOWN;
  if (frame.function == kSyscallFunction) flags |= tables::columns::STACK_SYSCALL;
  if (frame.function == kInterruptFunction) flags |= tables::columns::STACK_INTERRUPT;
  if ((frame.flags & FRAME_IMPORT) != 0) flags |= tables::columns::STACK_IMPORT;
  return flags;
}

}  // namespace

void StackProbe::answer_with(const OpenFrame& frame, std::uint16_t flags) {
  Answer& answer = answers_.back();
  answer.id = frame.id;
  answer.depth = frame.depth;
  answer.flags |= static_cast<std::uint16_t>(flags | tables::columns::STACK_FRAME_KNOWN);
  Waiting& waiting = waiting_[frame.id];
  waiting.parent = frame.parent;
  waiting.parent_known = (frame.flags & FRAME_PARENT) != 0;
  waiting.answers.push_back(answers_.size() - 1);
}

void StackProbe::on_frame(const Frame& frame, const Owner&) {
  if (waiting_.empty()) return;
  const auto found = waiting_.find(frame.id);
  if (found == waiting_.end()) return;
  for (const std::size_t index : found->second.answers) {
    Answer& answer = answers_[index];
    answer.flags = static_cast<std::uint16_t>((answer.flags & ~kOfFrame) | flags_of(frame));
    answer.entry_ip = (frame.flags & FRAME_ENTRY) != 0 ? frame.entry_ip : 0;
    answer.import_ip = (frame.flags & FRAME_IMPORT) != 0 ? frame.import_ip : 0;
  }
  waiting_.erase(found);
}

void StackProbe::on_cancelled(std::uint64_t id) {
  const auto found = waiting_.find(id);
  if (found == waiting_.end()) return;
  const Waiting taken = std::move(found->second);
  waiting_.erase(found);
  for (const std::size_t index : taken.answers) {
    Answer& answer = answers_[index];
    if (taken.parent_known) {
      answer.id = taken.parent;
      --answer.depth;
    } else {
      answer.flags =
          static_cast<std::uint16_t>(answer.flags & ~(kOfFrame | tables::columns::STACK_INNERMOST));
    }
  }
  if (!taken.parent_known) return;
  Waiting& below = waiting_[taken.parent];
  below.answers.insert(below.answers.end(), taken.answers.begin(), taken.answers.end());
}

void StackProbe::put_frame(Batch& batch, std::size_t row, std::uint64_t first_id) const noexcept {
  using enum Column;
  const Answer& answer = answers_[row];
  const bool known = (answer.flags & tables::columns::STACK_FRAME_KNOWN) != 0;
  batch.put<at_times_frame>(row, known ? answer.id + first_id : 0);
  batch.put<at_times_entry_ip>(row, answer.entry_ip);
  batch.put<at_times_import_ip>(row, answer.import_ip);
  batch.put<at_times_depth>(row, known ? answer.depth : 0);
  batch.put<at_times_flags>(row, answer.flags);
}

void PositionProbe::before_row(const BranchStep& step, std::uint8_t, StackMachine& machine, const Owner&) {
  const StreamPosition& row = step.position;
  if (const std::uint64_t id = machine.cancelled(); id != UINT64_MAX) on_cancelled(id);
  while (answers_.size() < positions_.size()) {
    const Position& position = positions_[answers_.size()];
    const bool is_before = position.instructions != row.instructions
                               ? position.instructions < row.instructions
                               : position.offset <= row.offset;
    if (!is_before) return;
    find(machine);
  }
}

void PositionProbe::at_end(const StreamPosition&, StackMachine& machine, const Owner&) {
  if (const std::uint64_t id = machine.cancelled(); id != UINT64_MAX) on_cancelled(id);
  while (answers_.size() < positions_.size()) find(machine);
  frames_ = machine.frames();
}

void PositionProbe::find(const StackMachine& machine) {
  const ThreadStack& stack = machine.current();
  answers_.emplace_back();
  if (!stack.empty()) answer_with(stack.at(stack.size() - 1), tables::columns::STACK_INNERMOST);
}

std::unique_ptr<Batch> PositionProbe::rows(std::uint64_t first_id) const {
  using enum Column;
  tables::columns::ColumnMask mask = 0;
  for (const Column column :
       {at_times_frame, at_times_entry_ip, at_times_import_ip, at_times_depth, at_times_flags})
    mask |= tables::columns::ColumnMask{1} << tables::columns::index_of(column);
  auto batch = std::make_unique<Batch>(tables::columns::TableId::at_times, mask);
  if (!batch->reserve(answers_.size())) return nullptr;
  for (std::size_t row = 0; row < answers_.size(); ++row) put_frame(*batch, row, first_id);
  batch->add_rows(answers_.size());
  return batch->out_of_memory() ? nullptr : std::move(batch);
}

// The state after the last row is certain of all times after it.
void TimeProbe::note(const StreamPosition& now, const StackMachine& machine, const Owner& owner) {
  while (next_after_ < least_.size() && least_[next_after_] <= latest_) ++next_after_;
  while (next_after_ > 0 && least_[next_after_ - 1] > latest_) --next_after_;
  if (next_after_ == least_.size()) return;
  while (certain_.size() > first_certain_ && certain_.back().first >= next_after_) certain_.pop_back();
  const ThreadStack& stack = machine.current();
  Certain certain;
  certain.first = next_after_;
  certain.stack = &stack;
  certain.frames = machine.frames();
  certain.top = stack.empty() ? 0 : stack.at(stack.size() - 1).id;
  certain.switches = switches_;
  certain.position = now;
  certain.position.offset = last_offset_;
  certain.owner = owner;
  certain_.push_back(certain);
}

void TimeProbe::follow(StackMachine& machine, const Owner& owner) {
  const std::uint64_t frames = machine.cancelled();
  if (frames != UINT64_MAX) on_cancelled(frames);
  for (std::size_t i = certain_.size(); i > first_certain_ && certain_[i - 1].frames > frames; --i)
    certain_[i - 1].frames = frames;
  if (owner == last_owner_) return;
  last_owner_ = owner;
  ++switches_;
}

void TimeProbe::before_row(const BranchStep& step, std::uint8_t, StackMachine& machine, const Owner& owner) {
  const StreamPosition& row = step.position;
  follow(machine, owner);
  if (timed_) note(row, machine, owner);
  last_offset_ = row.offset;
  timed_ = row.time_known;
  if (!timed_) return;
  while (answers_.size() < most_.size() && most_[answers_.size()] < row.tsc)
    answer(row, machine, owner, true);
  const bool no_limit = row.tsc_error == UINT32_MAX;
  latest_ = no_limit ? UINT64_MAX : row.tsc + row.tsc_error;
}

void TimeProbe::at_end(const StreamPosition& end, StackMachine& machine, const Owner& owner) {
  frames_ = machine.frames();
  follow(machine, owner);
  if (timed_) note(end, machine, owner);
  while (answers_.size() < most_.size()) answer(end, machine, owner, false);
}

void TimeProbe::answer(const StreamPosition& now, const StackMachine& machine, const Owner& owner,
                       bool covered) {
  const std::size_t index = answers_.size();
  while (first_certain_ + 1 < certain_.size() && certain_[first_certain_ + 1].first <= index)
    ++first_certain_;
  answers_.emplace_back();
  Moment& moment = moments_.emplace_back();
  moment.end = now;
  const bool any = first_certain_ < certain_.size() && certain_[first_certain_].first <= index;
  if (!any) return;
  const Certain& before = certain_[first_certain_];
  moment.position = before.position;
  if (before.owner.cpu == owner.cpu) moment.owner.cpu = owner.cpu;
  if (before.owner == owner) moment.owner = owner;
  if (!covered) return;
  answers_.back().flags |= std::uint16_t{tables::columns::STACK_COVERED};
  const ThreadStack& stack = machine.current();
  if (before.stack != &stack) return;
  for (std::size_t i = stack.size(); i-- > 0;) {
    const OpenFrame& frame = stack.at(i);
    if (frame.id >= before.frames) continue;
    const bool same = machine.frames() == before.frames && before.switches == switches_;
    const bool innermost = same && frame.id == before.top;
    return answer_with(frame, innermost ? std::uint16_t{tables::columns::STACK_INNERMOST} : std::uint16_t{0});
  }
}

std::unique_ptr<Batch> TimeProbe::rows(std::uint32_t stream, std::uint64_t first_id) const {
  using enum Column;
  auto batch = std::make_unique<Batch>(tables::columns::TableId::at_times, tables::columns::kAllColumns);
  if (!batch->reserve(moments_.size())) return nullptr;
  for (std::size_t row = 0; row < moments_.size(); ++row) {
    const Moment& moment = moments_[row];
    batch->begin_run(run_of(moment.owner, stream));
    batch->put<at_times_time>(row, row);
    batch->put<at_times_tsc>(row, least_[row]);
    batch->put<at_times_tsc_error>(row, static_cast<std::uint32_t>(most_[row] - least_[row]));
    batch->put<at_times_branch>(row, moment.position.branches);
    batch->put<at_times_end_branch>(row, moment.end.branches);
    batch->put<at_times_instruction>(row, moment.position.instructions);
    batch->put<at_times_end_instruction>(row, moment.end.instructions);
    batch->put<at_times_offset>(row, moment.position.offset);
    batch->put<at_times_end_offset>(row, moment.end.offset);
    put_frame(*batch, row, first_id);
    batch->add_rows(1);
  }
  return batch->out_of_memory() ? nullptr : std::move(batch);
}

}  // namespace ptkit::tables::calls
