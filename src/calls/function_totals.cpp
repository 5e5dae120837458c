#include "calls/function_totals.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace ptkit::calls {

void Totals::add(const Frame& frame) {
  ++count;
  self_instructions += frame.self_instructions;
  instructions += frame.new_instructions;
  branches += frame.new_branches;
  if ((frame.flags & FRAME_TIME_KNOWN) == 0 || (frame.flags & FRAME_END_TIME_KNOWN) == 0) return;
  time_known = true;
  durations.add(frame.end.tsc - std::min(frame.begin.tsc, frame.end.tsc));
  if ((frame.flags & FRAME_RECURSIVE) != 0) return;
  const std::uint64_t begun = frame.begin.tsc + frame.begin.tsc_error;
  least += frame.end.tsc - std::min(begun, frame.end.tsc);
  most += frame.end.tsc + frame.end.tsc_error - std::min(frame.begin.tsc, frame.end.tsc);
}

void Totals::add_all(const Totals& others) {
  count += others.count;
  instructions += others.instructions;
  self_instructions += others.self_instructions;
  branches += others.branches;
  least += others.least;
  most += others.most;
  time_known = time_known || others.time_known;
  durations.add_all(others.durations);
}

void FunctionTotals::on_frame(const Frame& frame, const Owner& owner) {
  if (!filter_.selects(frame, owner)) return;
  if (frame.group >= totals_.size())
    totals_.resize(std::max<std::size_t>(frame.group + 1, totals_.size() * 2));
  totals_[frame.group].add(frame);
}

void FunctionTotals::add_all(const FunctionTotals& others, const FrameGroups& groups) {
  by_ = groups.by();
  for (std::uint32_t i = 0; i < others.totals_.size(); ++i) {
    if (others.totals_[i].count == 0) continue;
    const std::uint32_t number = i < kFirstFunction ? i : groups_.number(groups.table().at(i));
    if (number >= totals_.size()) totals_.resize(std::max<std::size_t>(number + 1, totals_.size() * 2));
    totals_[number].add_all(others.totals_[i]);
  }
}

std::unique_ptr<columns::Batch> FunctionTotals::rows(columns::ColumnMask mask) {
  using enum columns::Column;
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < totals_.size(); ++i) {
    if (totals_[i].count != 0) order.push_back(i);
  }
  const auto key = [this](std::uint32_t i) {
    const Function& one = groups_.at(i);
    return std::tuple(~totals_[i].instructions, one.file, one.offset, one.entry_ip, one.space, i);
  };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  auto batch = std::make_unique<columns::Batch>(columns::TableId::functions, mask);
  if (!batch->reserve(order.size())) return nullptr;
  for (std::size_t row = 0; row < order.size(); ++row) {
    Totals& totals = totals_[order[row]];
    const Function& function = groups_.at(order[row]);
    unsigned flags = 0;
    if (totals.durations.exact()) flags |= columns::FUNCTION_EXACT;
    if (order[row] == kSyscallFunction) flags |= columns::FUNCTION_SYSCALL;
    if (order[row] == kInterruptFunction) flags |= columns::FUNCTION_INTERRUPT;
    if (order[row] >= kFirstFunction && by_ != By::MODULE) flags |= columns::FUNCTION_ENTRY_KNOWN;
    if (function.file >= 0) flags |= columns::FUNCTION_FILE_KNOWN;
    if (totals.time_known) flags |= columns::FUNCTION_TIME_KNOWN;
    batch->put<functions_entry_ip>(row, function.entry_ip);
    batch->put<functions_space>(row, function.space);
    batch->put<functions_file>(row, function.file);
    batch->put<functions_flags>(row, static_cast<std::uint8_t>(flags));
    batch->put<functions_count>(row, totals.count);
    batch->put<functions_instructions>(row, totals.instructions);
    batch->put<functions_self_instructions>(row, totals.self_instructions);
    batch->put<functions_branches>(row, totals.branches);
    batch->put<functions_least>(row, totals.least);
    batch->put<functions_most>(row, totals.most);
    batch->put<functions_p50>(row, totals.durations.quantile(50));
    batch->put<functions_p99>(row, totals.durations.quantile(99));
    batch->put<functions_max>(row, totals.durations.max());
  }
  batch->add_rows(order.size());
  return batch;
}

}  // namespace ptkit::calls
