#include "tables/calls/sums/function_totals.h"

#include <algorithm>
#include <tuple>

#include "tables/columns/part_memory.h"

namespace ptkit::tables::calls {

namespace {

void put_function(tables::columns::Batch& batch, std::size_t row, const Function& function) noexcept {
  using enum tables::columns::Column;
#define PT_FUNCTION_CELL(name, value) batch.put<functions_##name>(row, value);
#include "tables/calls/sums/sums.def"
}

}  // namespace

std::unique_ptr<tables::columns::Batch> function_rows(const FunctionTable& functions) {
  using enum tables::columns::Column;
  constexpr auto bit = [](tables::columns::Column column) {
    return tables::columns::ColumnMask{1} << tables::columns::index_of(column);
  };
  constexpr auto kMask = bit(functions_flags)
#define PT_FUNCTION_CELL(name, value) | bit(functions_##name)
#include "tables/calls/sums/sums.def"
      ;
  auto batch = std::make_unique<tables::columns::Batch>(tables::columns::TableId::functions, kMask);
  if (!batch->reserve(functions.size())) return nullptr;
  for (std::uint32_t i = 0; i < functions.size(); ++i) {
    put_function(*batch, i, functions.at(i));
    batch->put<functions_flags>(i, static_cast<std::uint16_t>(function_flags(functions.at(i), i)));
  }
  batch->add_rows(functions.size());
  return batch;
}

void Totals::add(const Frame& frame) {
  has_frames = true;
  FrameSums::add(frame);
  outermost.add(frame, {frame.new_instructions, frame.new_branches, (frame.flags & FRAME_RECURSIVE) != 0});
  if (frame.is_rest() || frame.crosses()) return;
  lengths.add(frame.instructions);
  if (frame.has_times()) durations.add(frame.end.tsc - std::min(frame.begin.tsc, frame.end.tsc));
}

void Totals::add_all(const Totals& others) {
  has_frames = has_frames || others.has_frames;
  FrameSums::add_all(others);
  outermost.add_all(others.outermost);
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
    put_function(*batch, row, groups.at(order[row]));
    unsigned flags = function_flags(groups.at(order[row]), order[row]) | sum_flags(totals);
    // Memory without a file is known by its begin.
    if (by == By::MODULE && !groups.at(order[row]).memory_base) {
      flags &= ~unsigned{tables::columns::FUNCTION_ENTRY_KNOWN};
      batch->put<functions_entry_ip>(row, 0);
    }
    if (totals.durations.exact() && totals.lengths.exact()) flags |= tables::columns::FUNCTION_EXACT;
    batch->put<functions_flags>(row, static_cast<std::uint16_t>(flags));
#define PT_FRAME_SUM(name, part) batch->put<functions_##name>(row, totals.name);
#define PT_GROUP_SUM(name, part) batch->put<functions_##name>(row, outermost.name);
#define PT_GROUP_TIME(name, part) batch->put<functions_##name>(row, outermost.name);
#include "tables/calls/sums/sums.def"
    batch->put<functions_p50_instructions>(row, totals.lengths.quantile(50));
    batch->put<functions_p99_instructions>(row, totals.lengths.quantile(99));
    batch->put<functions_max_instructions>(row, totals.lengths.max());
    batch->put<functions_p50>(row, totals.durations.quantile(50));
    batch->put<functions_p99>(row, totals.durations.quantile(99));
    batch->put<functions_max>(row, totals.durations.max());
    batch->put<functions_untraced>(row, outermost.off_cpu.untraced.least);
    batch->put<functions_untraced_error>(row, outermost.off_cpu.untraced.error());
    batch->put<functions_switched>(row, outermost.off_cpu.switched.least);
    batch->put<functions_switched_error>(row, outermost.off_cpu.switched.error());
    batch->put<functions_lost>(row, outermost.off_cpu.lost.least);
    batch->put<functions_lost_error>(row, outermost.off_cpu.lost.error());
  }
  batch->add_rows(order.size());
  return batch;
}

}  // namespace ptkit::tables::calls
