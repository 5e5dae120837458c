#include "tables/calls/sums/table_frames.h"

#include <algorithm>
#include <numeric>

#include "tables/calls/sums/call_tree.h"
#include "tables/calls/sums/frame_regroup.h"
#include "tables/calls/sums/function_totals.h"

namespace ptkit::tables::calls {

TableFrames::TableFrames(const FrameIndex& notes, const CallRows& rows) : notes_(notes), rows_(rows) {
  bool is_ordered = true;
  for (std::size_t row = 1; row < rows_.rows && is_ordered; ++row)
    is_ordered = rows_.id[row - 1] < rows_.id[row];
  if (!is_ordered) {
    order_.resize(rows_.rows);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(),
              [this](std::size_t a, std::size_t b) { return rows_.id[a] < rows_.id[b]; });
  }
  is_whole_ = rows_.rows == notes.frames();
  for (std::size_t position = 0; position < rows_.rows; ++position) {
    const std::size_t row = row_at(position);
    is_whole_ = is_whole_ && rows_.id[row] == position;
    if ((rows_.flags[row] & FRAME_PARENT) != 0 && caller_of(row) == kNone) has_callers_ = false;
  }
}

std::size_t TableFrames::row_of(std::uint64_t id) const noexcept {
  if (is_whole_) return row_at(id);
  std::size_t low = 0;
  std::size_t high = rows_.rows;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (rows_.id[row_at(middle)] < id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < rows_.rows && rows_.id[row_at(low)] == id ? row_at(low) : kNone;
}

std::size_t TableFrames::caller_of(std::size_t row) const noexcept {
  return (rows_.flags[row] & FRAME_PARENT) != 0 ? row_of(rows_.parent[row]) : kNone;
}

Frame TableFrames::frame_at(std::size_t row) const noexcept {
  Frame frame;
  frame.id = rows_.id[row];
  frame.parent = rows_.parent[row];
  frame.function = frame.group = rows_.function[row];
  frame.flags = rows_.flags[row];
  frame.how = static_cast<CallKind>(rows_.how[row]);
  if (rows_.inline_level.first != nullptr) frame.inline_level = rows_.inline_level[row];
  const bool knows_entry = (frame.flags & FRAME_ENTRY) != 0;
  frame.entry_ip = knows_entry ? rows_.entry_ip[row] : notes_.functions().at(frame.function).entry_ip;
  frame.instructions = CallRows::count(rows_.instructions, row);
  frame.self_instructions = CallRows::count(rows_.self_instructions, row);
  frame.branches = CallRows::count(rows_.branches, row);
  frame.begin.tsc = rows_.tsc[row];
  frame.begin.tsc_error = rows_.tsc_error[row];
  frame.end.tsc = rows_.end_tsc[row];
  frame.end.tsc_error = rows_.end_tsc_error[row];
  const auto length = [row](const CellView<std::int64_t>& least, const CellView<std::int64_t>& error) {
    return Length{CallRows::count(least, row), CallRows::count(least, row) + CallRows::count(error, row)};
  };
  frame.off_cpu = {length(rows_.untraced, rows_.untraced_error), length(rows_.switched, rows_.switched_error),
                   length(rows_.lost, rows_.lost_error)};
  return frame;
}

std::unique_ptr<tables::columns::Batch> TableFrames::functions(By by, Tails tails,
                                                               tables::columns::ColumnMask mask) const {
  FrameGroups groups(by, notes_.functions());
  FunctionTotals totals({});
  if (by == By::FUNCTION && tails == Tails::NESTED) {
    for (std::size_t row = 0; row < rows_.rows; ++row) {
      Frame frame = frame_at(row);
      const FrameIndex::Share share = notes_.share_of(frame);
      frame.new_instructions = share.instructions;
      frame.new_branches = share.branches;
      totals.on_frame(frame, {});
    }
  } else {
    FrameRegroup regroup(notes_, groups, tails, rows_.rows);
    if (tails == Tails::REPLACED) {
      for (std::size_t id = 0; id < rows_.rows; ++id) regroup.find_tail(frame_at(row_at(id)));
    }
    for (std::size_t id = 0; id < rows_.rows; ++id) {
      const std::size_t row = row_at(id);
      Frame frame = frame_at(row);
      regroup.put(frame, by == By::ENTRY ? rows_.space[row] : trace::kAnySpace);
      totals.on_frame(frame, {});
    }
  }
  FunctionTotals all({});
  all.add_all(totals, groups);
  return all.rows(mask);
}

// Rows in an order in which each frame comes after its parent.
std::vector<std::size_t> TableFrames::callers_first() const {
  std::vector<std::size_t> sorted;
  sorted.reserve(rows_.rows);
  std::vector<bool> done(rows_.rows);
  std::vector<std::size_t> chain;
  for (std::size_t position = 0; position < rows_.rows; ++position) {
    // Few frames have callers with higher numbers.
    for (std::size_t row = row_at(position); row != kNone && !done[row];) {
      done[row] = true;
      chain.push_back(row);
      row = caller_of(row);
    }
    sorted.insert(sorted.end(), chain.rbegin(), chain.rend());
    chain.clear();
  }
  return sorted;
}

std::vector<TableFrames::Part> TableFrames::parts_of(const CellView<std::uint8_t>& kind_of,
                                                     std::size_t kinds) const {
  const std::size_t functions = notes_.functions().size();
  std::vector<Part> parts(kinds * functions);
  std::vector<std::size_t> call_of(rows_.rows, kNone);
  for (const std::size_t row : callers_first()) {
    const std::size_t caller = caller_of(row);
    call_of[row] = kind_of[row] != 0 ? row : caller == kNone ? kNone : call_of[caller];
    if (call_of[row] == kNone) continue;
    Part& part = parts[(kind_of[call_of[row]] - 1U) * functions + rows_.function[row]];
    ++part.count;
    part.self_instructions += CallRows::count(rows_.self_instructions, row);
    part.first = std::min(part.first, call_of[row]);
  }
  return parts;
}

std::vector<std::uint8_t> TableFrames::outermost(const CellView<std::uint8_t>& chosen) const {
  std::vector<std::uint8_t> is_inside(rows_.rows);
  std::vector<std::uint8_t> outer(rows_.rows);
  for (const std::size_t row : callers_first()) {
    const std::size_t caller = caller_of(row);
    is_inside[row] = caller == kNone ? 0 : is_inside[caller];
    if (chosen[row] == 0) continue;
    outer[row] = is_inside[row] == 0 ? 1 : 0;
    is_inside[row] = 1;
  }
  return outer;
}

std::unique_ptr<tables::columns::Batch> TableFrames::tree(tables::columns::ColumnMask mask) const {
  const std::vector<std::size_t> sorted = callers_first();
  CallTree tree;
  for (std::size_t i = sorted.size(); i-- > 0;) tree.on_frame(frame_at(sorted[i]), {});
  CallTree all;
  all.add_all(tree, notes_.functions());
  return all.rows(mask);
}

}  // namespace ptkit::tables::calls
