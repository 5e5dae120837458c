#include "flow/fast/path_rows.h"

#include <algorithm>
#include <vector>

namespace ptkit::flow {

namespace {

void put(base::ArenaVector<PathPart>& parts, std::uint32_t path, std::size_t first, std::size_t rows,
         std::size_t head) {
  if (path >= parts.size()) parts.resize(std::max<std::size_t>(path + 1, parts.size() * 2));
  parts[path] = {static_cast<std::uint32_t>(first), static_cast<std::uint16_t>(rows),
                 static_cast<std::uint16_t>(head)};
}

// The direct branches at the start of the path.
std::span<const PathBranch> head_of(std::span<const PathBranch> branches) noexcept {
  const auto takes_bit = [](const PathBranch& one) {
    return one.kind != BranchKind::JUMP && one.kind != BranchKind::CALL;
  };
  const auto first = std::find_if(branches.begin(), branches.end(), takes_bit);
  return branches.first(static_cast<std::size_t>(first - branches.begin()));
}

}  // namespace

void PathRows::add_branches(std::uint32_t path, std::span<const PathBranch> branches) {
  put_branches(path, branches, {}, head_of(branches).size(), 0);
}

void PathRows::add_branches(std::uint32_t path, std::span<const PathBranch> branches,
                            const BranchChoice& choice, const code::image::CodeView& view) {
  const auto is_chosen = [&](const PathBranch& one) {
    if (choice.has(one.kind, one.flags)) return true;
    const bool jumps = one.kind == BranchKind::COND || one.kind == BranchKind::JUMP;
    return choice.jumps != nullptr && jumps && (one.flags & TAKEN) != 0 &&
           choice.jumps->has(view, one.from, one.to);
  };
  const std::size_t before = head_of(branches).size();
  std::vector<PathBranch> chosen;
  std::vector<std::uint16_t> numbers;
  std::size_t head = 0;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (!is_chosen(branches[i])) continue;
    chosen.push_back(branches[i]);
    numbers.push_back(static_cast<std::uint16_t>(i));
    if (i < before) ++head;
  }
  const bool last = !numbers.empty() && numbers.back() + std::size_t{1} == branches.size();
  if (path >= path_branches_.size())
    path_branches_.resize(std::max<std::size_t>(path + 1, path_branches_.size() * 2));
  path_branches_[path] = static_cast<std::uint16_t>(branches.size());
  put_branches(path, chosen, numbers, head, last ? PathPart::kLast : std::uint16_t{0});
}

void PathRows::put_branches(std::uint32_t path, std::span<const PathBranch> branches,
                            std::span<const std::uint16_t> numbers, std::size_t head, std::uint16_t last) {
  if (branches.empty()) return put(branches_, path, 1, 0, 0);
  put(branches_, path, groups_.size(), branches.size() | last, head);
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const std::size_t at = i % RowGroup::kRows;
    if (at == 0) {
      groups_.emplace_back();
      counts_.emplace_back();
      if (!numbers.empty()) numbers_.emplace_back();
    }
    groups_.back().from[at] = branches[i].from;
    groups_.back().to[at] = branches[i].to;
    groups_.back().kind[at] = static_cast<std::uint8_t>(branches[i].kind);
    groups_.back().flags[at] = branches[i].flags;
    counts_.back()[at] = branches[i].before;
    if (!numbers.empty()) numbers_.back()[at] = numbers[i];
  }
}

void PathRows::add_blocks(std::uint32_t path, std::span<const PathBlock> blocks, std::size_t head,
                          std::size_t branches) {
  put(block_parts_, path, blocks_.size(), blocks.size(), head);
  block_branches_.resize(block_parts_.size());
  block_branches_[path] = static_cast<std::uint16_t>(branches);
  blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
}

}  // namespace ptkit::flow
