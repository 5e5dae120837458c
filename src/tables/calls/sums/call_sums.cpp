#include "tables/calls/sums/call_sums.h"

#include <algorithm>

#include "base/node_bytes.h"
#include "tables/columns/part_memory.h"

namespace ptkit::tables::calls {

CallSums::CallSums(const tables::columns::Selection& selection, Tree tree, std::size_t most_contexts)
    : filter_(selection), most_contexts_(tree == Tree::WHOLE ? SIZE_MAX : most_contexts) {
  if (tree != Tree::NONE) tree_.emplace(tables::columns::Selection{}, filter_.selects_all());
}

void CallSums::drop_large_tree() {
  if (tree_ && tree_->contexts() > most_contexts_) tree_.reset();
}

void CallSums::on_frame(const Frame& frame, const Owner& owner) {
  if (!filter_.selects(frame, owner)) return on_hidden(frame);
  if (tree_) {
    tree_->on_frame(frame, owner);
    drop_large_tree();
  }
  if (frame.cell >= sums_.size()) sums_.resize(std::max<std::size_t>(frame.cell + 1, sums_.size() * 2));
  Sums& sums = sums_[frame.cell];
  sums.totals.add(frame);
  for (std::size_t i = 0; i < kMoreGroups; ++i) sums.more[i].add(frame, frame.more[i]);
}

void CallSums::on_hidden(const Frame& frame) {
  if (tree_) tree_->on_hidden(frame);
}

std::uint64_t CallSums::bytes() const noexcept {
  std::uint64_t sum = sums_.capacity() * sizeof(Sums) + (tree_ ? tree_->bytes() : 0) +
                      numbers_.size() * base::node_bytes<decltype(numbers_)::value_type>();
  for (const Sums& sums : sums_) sum += sums.totals.lists_bytes();
  for (const FunctionTable& groups : groups_) sum += groups.bytes();
  return sum;
}

// Those of cells that have no frame yet, then all of them once more in add_all(), with their rows.
std::uint64_t CallSums::later_bytes(const FrameCounts& counts) const noexcept {
  const std::uint64_t there = std::min<std::uint64_t>(sums_.size(), counts.groups);
  return (2 * counts.groups - there) * sizeof(Sums) +
         kTables * counts.groups *
             tables::columns::row_bytes(tables::columns::TableId::functions, tables::columns::kAllColumns) +
         (tree_ ? tree_->later_bytes(counts) : 0);
}

// Numbers here of the other stream's groups that have frames.
std::vector<std::uint32_t> CallSums::renumber(const CallSums& others, const FunctionTable& from,
                                              const MoreGroups& groups, std::size_t table) {
  std::vector<bool> has_frames(from.size());
  for (std::uint32_t i = 0; i < others.sums_.size(); ++i) {
    if (others.sums_[i].totals.has_frames) has_frames[group_of(groups.cell(i), table)] = true;
  }
  std::vector<std::uint32_t> numbers(from.size());
  for (std::uint32_t i = 0; i < numbers.size(); ++i) {
    if (has_frames[i]) numbers[i] = i < kFirstFunction ? i : groups_[table].number(from.at(i));
  }
  return numbers;
}

void CallSums::add_all(CallSums&& others, const FunctionTable& functions, const MoreGroups& groups) {
  std::array<std::vector<std::uint32_t>, kTables> numbers;
  for (std::size_t table = 0; table < kTables; ++table) {
    const FunctionTable& from = table == 0 ? functions : groups.groups(table - 1).table();
    numbers[table] = renumber(others, from, groups, table);
  }
  for (std::uint32_t i = 0; i < others.sums_.size(); ++i) {
    if (!others.sums_[i].totals.has_frames) continue;
    const MoreGroups::Cell& old = groups.cell(i);
    MoreGroups::Cell cell{.function = numbers[0][old.function]};
    for (std::size_t k = 0; k < kMoreGroups; ++k) cell.groups[k] = numbers[1 + k][old.groups[k]];
    const auto [found, is_new] = numbers_.emplace(cell, static_cast<std::uint32_t>(sums_.size()));
    if (is_new) {
      sums_.push_back(std::move(others.sums_[i]));
      continue;
    }
    Sums& sums = sums_[found->second];
    sums.totals.add_all(others.sums_[i].totals);
    for (std::size_t k = 0; k < kMoreGroups; ++k) sums.more[k].add_all(others.sums_[i].more[k]);
  }
  if (!others.tree_) tree_.reset();
  if (tree_) tree_->add_all(*others.tree_, functions);
  drop_large_tree();
}

Totals CallSums::sum_of(const std::vector<std::uint32_t>& cells, std::size_t table) const {
  Totals sum;
  Outermost outermost;
  for (const std::uint32_t cell : cells) {
    sum.add_all(sums_[cell].totals);
    outermost.add_all(outermost_of(sums_[cell], table));
  }
  sum.outermost = outermost;
  return sum;
}

std::unique_ptr<tables::columns::Batch> CallSums::functions(By by, tables::columns::ColumnMask mask) {
  std::size_t table = 0;
  for (std::size_t i = 0; i < kMoreGroups; ++i) {
    if (MoreGroups::kBy[i] == by) table = 1 + i;
  }
  std::vector<std::vector<std::uint32_t>> cells_of(groups_[table].size());
  std::vector<std::optional<std::uint64_t>> instructions(groups_[table].size());
  for (const auto& [cell, number] : numbers_) {
    const std::uint32_t group = group_of(cell, table);
    instructions[group] = instructions[group].value_or(0) + outermost_of(sums_[number], table).instructions;
    cells_of[group].push_back(number);
  }
  Totals sum;
  const auto totals_of = [&](std::uint32_t group) {
    const std::vector<std::uint32_t>& cells = cells_of[group];
    if (cells.size() == 1) {
      Sums& only = sums_[cells.front()];
      return RowTotals{only.totals, outermost_of(only, table)};
    }
    sum = sum_of(cells, table);
    return RowTotals{sum, sum.outermost};
  };
  return rows_of_totals(by, groups_[table], instructions, totals_of, mask);
}

}  // namespace ptkit::tables::calls
