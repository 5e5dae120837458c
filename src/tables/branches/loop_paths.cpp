#include "tables/branches/loop_paths.h"

#include <algorithm>

#include "tables/feedback/count_table.h"

namespace ptkit::tables::branches {

using flow::BranchKind;

LoopPaths::LoopPaths(const LoopMap& map, const std::vector<std::uint8_t>& wanted)
    : map_(map), roots_(map.size()), sizes_(map.size()), nodes_(1) {
  for (std::size_t i = 0; i < map.size(); ++i) {
    if (wanted[i] == 0) continue;
    roots_[i] = static_cast<std::uint32_t>(nodes_.size());
    const PathNode first{.loop = static_cast<std::int32_t>(i)};
    nodes_.insert(nodes_.end(), 2, first);
  }
  slots_.resize(std::size_t{1} << 10U);
}

void LoopPaths::on_enter(Visit& visit, Visit* outer) {
  if (outer != nullptr && outer->path != 0) go(*outer, {0, map_.loop(visit.loop).head, StepKind::LOOP});
  visit.path = visit.is_whole ? roots_[static_cast<std::size_t>(visit.loop)] : 0;
}

void LoopPaths::on_round(Visit& visit) {
  if (visit.path != 0) ++nodes_[visit.path].rounds;
  visit.path = roots_[static_cast<std::size_t>(visit.loop)];
}

void LoopPaths::on_leave(Visit& visit) {
  if (visit.path != 0 && visit.is_whole) ++nodes_[visit.path].exits;
}

void LoopPaths::on_row(const calls::BranchStep& row, std::uint8_t, Visit* innermost, const calls::Owner&) {
  if (innermost == nullptr || innermost->path == 0) return;
  if (row.kind == BranchKind::COND) {
    const bool is_taken = (row.flags & flow::TAKEN) != 0;
    go(*innermost, {row.from_ip, row.to_ip, is_taken ? StepKind::TAKEN : StepKind::NOT_TAKEN});
  } else if (row.kind == BranchKind::JUMP_INDIRECT || row.kind == BranchKind::CALL_INDIRECT) {
    go(*innermost, {row.from_ip, row.to_known() ? row.to_ip : 0, StepKind::INDIRECT});
  }
}

void LoopPaths::go(Visit& visit, const PathStep& step) {
  const auto loop = static_cast<std::size_t>(visit.loop);
  const std::uint32_t others = roots_[loop] + 1;
  if (visit.path == others) return;
  std::uint32_t& slot = slot_of(visit.path, step);
  if (slot != 0) {
    visit.path = slot;
    return;
  }
  if (sizes_[loop] == kMostNodes) {
    visit.path = others;
    return;
  }
  ++sizes_[loop];
  slot = static_cast<std::uint32_t>(nodes_.size());
  nodes_.push_back({.step = step, .parent = visit.path, .loop = visit.loop});
  visit.path = slot;
  if (nodes_.size() * 2 > slots_.size()) grow();
}

std::uint32_t& LoopPaths::slot_of(std::uint32_t parent, const PathStep& step) noexcept {
  const std::size_t mask = slots_.size() - 1;
  const std::uint64_t key = step.from_ip * 3 + step.to_ip + (std::uint64_t{parent} << 40U);
  std::size_t at = static_cast<std::size_t>(feedback::mixed(key)) & mask;
  for (; slots_[at] != 0; at = (at + 1) & mask) {
    const PathNode& node = nodes_[slots_[at]];
    if (node.parent == parent && node.step == step) break;
  }
  return slots_[at];
}

void LoopPaths::grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (std::size_t i = 1; i < nodes_.size(); ++i) {
    const PathNode& node = nodes_[i];
    if (node.parent != 0) slot_of(node.parent, node.step) = static_cast<std::uint32_t>(i);
  }
}

}  // namespace ptkit::tables::branches
