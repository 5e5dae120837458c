#include "tables/calls/sums/function_totals.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "tables/columns/part_memory.h"

namespace ptkit::tables::calls {

namespace {

// Writes what a function is. Returns its flags.
unsigned put_function(tables::columns::Batch& batch, std::size_t row, const Function& function,
                      std::uint32_t number) noexcept {
  using enum tables::columns::Column;
  const bool is_import = function.import != 0;
  batch.put<functions_entry_ip>(row, is_import ? 0 : stored_entry(function));
  batch.put<functions_import_ip>(row, is_import ? function.entry_ip : 0);
  batch.put<functions_space>(row, function.space);
  batch.put<functions_code_tsc>(row, function.code_tsc);
  batch.put<functions_file>(row, function.file);
  batch.put<functions_inline_level>(row, function.level);
  unsigned flags = 0;
  if (number == kSyscallFunction) flags |= tables::columns::FUNCTION_SYSCALL;
  if (number == kInterruptFunction) flags |= tables::columns::FUNCTION_INTERRUPT;
  if (is_import) flags |= tables::columns::FUNCTION_IMPORT;
  const bool has_entry = number >= kFirstFunction && function.thread == trace::kNoId && !is_import;
  if (has_entry) flags |= tables::columns::FUNCTION_ENTRY_KNOWN;
  if (function.file >= 0) flags |= tables::columns::FUNCTION_FILE_KNOWN;
  if (function.inlined != 0) flags |= tables::columns::FUNCTION_INLINED;
  return flags;
}

}  // namespace

std::unique_ptr<tables::columns::Batch> function_rows(const FunctionTable& functions) {
  using enum tables::columns::Column;
  constexpr auto kMask =
      (tables::columns::ColumnMask{1} << tables::columns::index_of(functions_entry_ip)) |
      (tables::columns::ColumnMask{1} << tables::columns::index_of(functions_import_ip)) |
      (tables::columns::ColumnMask{1} << tables::columns::index_of(functions_space)) |
      (tables::columns::ColumnMask{1} << tables::columns::index_of(functions_code_tsc)) |
      (tables::columns::ColumnMask{1} << tables::columns::index_of(functions_file)) |
      (tables::columns::ColumnMask{1} << tables::columns::index_of(functions_inline_level)) |
      (tables::columns::ColumnMask{1} << tables::columns::index_of(functions_flags));
  auto batch = std::make_unique<tables::columns::Batch>(tables::columns::TableId::functions, kMask);
  if (!batch->reserve(functions.size())) return nullptr;
  for (std::uint32_t i = 0; i < functions.size(); ++i)
    batch->put<functions_flags>(i, static_cast<std::uint16_t>(put_function(*batch, i, functions.at(i), i)));
  batch->add_rows(functions.size());
  return batch;
}

void Outermost::add(const Frame& frame, const GroupShare& share) {
  instructions += share.new_instructions;
  branches += share.new_branches;
  if (share.is_recursive || !frame.has_times()) return;
  least += frame.least_time();
  most += frame.most_time();
  away.add(frame.off_cpu);
}

void Outermost::add_all(const Outermost& others) {
  instructions += others.instructions;
  branches += others.branches;
  least += others.least;
  most += others.most;
  away.add(others.away);
}

void Totals::add(const Frame& frame) {
  has_frames = true;
  if (frame.is_call()) ++count;
  if (frame.is_begin_unseen()) ++begin_unseen;
  const bool is_whole = !frame.is_rest() && !frame.crosses();
  if (frame.crosses() && !frame.is_rest()) ++crossing;
  if ((frame.flags & FRAME_UNDECIDED) != 0) count_exact = false;
  self_instructions += frame.self_instructions;
  outermost.add(frame, {frame.new_instructions, frame.new_branches, (frame.flags & FRAME_RECURSIVE) != 0});
  if (is_whole) lengths.add(frame.instructions);
  if (!frame.has_times()) return;
  time_known = true;
  if (is_whole) durations.add(frame.end.tsc - std::min(frame.begin.tsc, frame.end.tsc));
}

void Totals::add_all(const Totals& others) {
  has_frames = has_frames || others.has_frames;
  count += others.count;
  begin_unseen += others.begin_unseen;
  crossing += others.crossing;
  count_exact = count_exact && others.count_exact;
  self_instructions += others.self_instructions;
  outermost.add_all(others.outermost);
  time_known = time_known || others.time_known;
  durations.add_all(others.durations);
  lengths.add_all(others.lengths);
}

void FunctionTotals::on_frame(const Frame& frame, const Owner& owner) {
  if (!filter_.selects(frame, owner)) return;
  if (frame.group >= totals_.size())
    totals_.resize(std::max<std::size_t>(frame.group + 1, totals_.size() * 2));
  totals_[frame.group].add(frame);
}

std::uint64_t FunctionTotals::bytes() const noexcept {
  std::uint64_t sum = totals_.capacity() * sizeof(Totals) + groups_.bytes();
  for (const Totals& totals : totals_) sum += totals.lists_bytes();
  return sum;
}

// Those of groups that have no frame yet, then all of them once more in add_all(), with their rows.
std::uint64_t FunctionTotals::later_bytes(const FrameCounts& counts) const noexcept {
  const std::uint64_t there = std::min<std::uint64_t>(totals_.size(), counts.groups);
  return (2 * counts.groups - there) * sizeof(Totals) +
         counts.groups *
             tables::columns::row_bytes(tables::columns::TableId::functions, tables::columns::kAllColumns);
}

void FunctionTotals::add_all(const FunctionTotals& others, const FrameGroups& groups) {
  by_ = groups.by();
  for (std::uint32_t i = 0; i < others.totals_.size(); ++i) {
    if (!others.totals_[i].has_frames) continue;
    const std::uint32_t number = i < kFirstFunction ? i : groups_.number(groups.table().at(i));
    if (number >= totals_.size()) totals_.resize(std::max<std::size_t>(number + 1, totals_.size() * 2));
    totals_[number].add_all(others.totals_[i]);
  }
}

std::unique_ptr<tables::columns::Batch> FunctionTotals::rows(tables::columns::ColumnMask mask) {
  std::vector<std::optional<std::uint64_t>> instructions(totals_.size());
  for (std::uint32_t i = 0; i < totals_.size(); ++i) {
    if (totals_[i].has_frames) instructions[i] = totals_[i].outermost.instructions;
  }
  const auto totals_of = [this](std::uint32_t group) {
    return RowTotals{totals_[group], totals_[group].outermost};
  };
  return rows_of_totals(by_, groups_, instructions, totals_of, mask);
}

std::unique_ptr<tables::columns::Batch> rows_of_totals(
    By by, const FunctionTable& groups, const std::vector<std::optional<std::uint64_t>>& instructions,
    const std::function<RowTotals(std::uint32_t)>& totals_of, tables::columns::ColumnMask mask) {
  using enum tables::columns::Column;
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < instructions.size(); ++i) {
    if (instructions[i]) order.push_back(i);
  }
  const auto key = [&](std::uint32_t i) {
    const Function& one = groups.at(i);
    return std::tuple(~*instructions[i], one.file, one.offset, one.entry_ip, one.space, one.level, i);
  };
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  auto batch = std::make_unique<tables::columns::Batch>(tables::columns::TableId::functions, mask);
  if (!batch->reserve(order.size())) return nullptr;
  for (std::size_t row = 0; row < order.size(); ++row) {
    const auto& [totals, outermost] = totals_of(order[row]);
    unsigned flags = put_function(*batch, row, groups.at(order[row]), order[row]);
    // Memory without a file is known by its begin.
    if (by == By::MODULE && !groups.at(order[row]).memory_base) {
      flags &= ~unsigned{tables::columns::FUNCTION_ENTRY_KNOWN};
      batch->put<functions_entry_ip>(row, 0);
    }
    if (totals.durations.exact() && totals.lengths.exact()) flags |= tables::columns::FUNCTION_EXACT;
    if (totals.time_known) flags |= tables::columns::FUNCTION_TIME_KNOWN;
    if (totals.count_exact) flags |= tables::columns::FUNCTION_COUNT_EXACT;
    batch->put<functions_flags>(row, static_cast<std::uint16_t>(flags));
    batch->put<functions_count>(row, totals.count);
    batch->put<functions_begin_unseen>(row, totals.begin_unseen);
    batch->put<functions_crossing>(row, totals.crossing);
    batch->put<functions_instructions>(row, outermost.instructions);
    batch->put<functions_self_instructions>(row, totals.self_instructions);
    batch->put<functions_branches>(row, outermost.branches);
    batch->put<functions_least>(row, outermost.least);
    batch->put<functions_most>(row, outermost.most);
    batch->put<functions_p50_instructions>(row, totals.lengths.quantile(50));
    batch->put<functions_p99_instructions>(row, totals.lengths.quantile(99));
    batch->put<functions_max_instructions>(row, totals.lengths.max());
    batch->put<functions_p50>(row, totals.durations.quantile(50));
    batch->put<functions_p99>(row, totals.durations.quantile(99));
    batch->put<functions_max>(row, totals.durations.max());
    batch->put<functions_untraced>(row, outermost.away.untraced.least);
    batch->put<functions_untraced_error>(row, outermost.away.untraced.error());
    batch->put<functions_switched>(row, outermost.away.switched.least);
    batch->put<functions_switched_error>(row, outermost.away.switched.error());
    batch->put<functions_lost>(row, outermost.away.lost.least);
    batch->put<functions_lost_error>(row, outermost.away.lost.error());
  }
  batch->add_rows(order.size());
  return batch;
}

}  // namespace ptkit::tables::calls
