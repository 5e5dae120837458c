#include "flow/way_rows.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace ptkit::flow {

namespace {

void put(base::ArenaVector<WayPart>& parts, std::uint32_t way, std::size_t first, std::size_t rows,
         std::size_t head) {
  if (way >= parts.size()) parts.resize(std::max<std::size_t>(way + 1, parts.size() * 2));
  parts[way] = {static_cast<std::uint32_t>(first), static_cast<std::uint16_t>(rows),
                static_cast<std::uint16_t>(head)};
}

// The direct branches that come first.
std::span<const WayBranch> head_of(std::span<const WayBranch> branches) noexcept {
  const auto takes_bit = [](const WayBranch& one) {
    return one.kind != BranchKind::JUMP && one.kind != BranchKind::CALL;
  };
  const auto first = std::find_if(branches.begin(), branches.end(), takes_bit);
  return branches.first(static_cast<std::size_t>(first - branches.begin()));
}

}  // namespace

void WayRows::add_branches(std::uint32_t way, std::span<const WayBranch> branches) {
  put_branches(way, branches, head_of(branches).size(), 0);
}

void WayRows::add_branches(std::uint32_t way, std::span<const WayBranch> branches,
                           const BranchChoice& choice) {
  const auto is_chosen = [&choice](const WayBranch& one) { return choice.has(one.kind, one.flags); };
  std::vector<WayBranch> chosen;
  std::copy_if(branches.begin(), branches.end(), std::back_inserter(chosen), is_chosen);
  const std::span<const WayBranch> before = head_of(branches);
  const auto head = std::count_if(before.begin(), before.end(), is_chosen);
  const bool last = !branches.empty() && is_chosen(branches.back());
  put_branches(way, chosen, static_cast<std::size_t>(head), last ? WayPart::kLast : std::uint16_t{0});
}

void WayRows::put_branches(std::uint32_t way, std::span<const WayBranch> branches, std::size_t head,
                           std::uint16_t last) {
  if (branches.empty()) return put(branches_, way, 1, 0, 0);
  put(branches_, way, groups_.size(), branches.size() | last, head);
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const std::size_t at = i % RowGroup::kRows;
    if (at == 0) {
      groups_.emplace_back();
      counts_.emplace_back();
    }
    groups_.back().from[at] = branches[i].from;
    groups_.back().to[at] = branches[i].to;
    groups_.back().kind[at] = static_cast<std::uint8_t>(branches[i].kind);
    groups_.back().flags[at] = branches[i].flags;
    counts_.back()[at] = branches[i].before;
  }
}

void WayRows::add_blocks(std::uint32_t way, std::span<const WayBlock> blocks, std::size_t head) {
  put(block_parts_, way, blocks_.size(), blocks.size(), head);
  blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
}

}  // namespace ptkit::flow
