#include "flow/way_rows.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace ptkit::flow {

namespace {

void put(base::ArenaVector<WayPart>& parts, std::uint32_t way, std::size_t first, std::size_t rows) {
  if (way >= parts.size()) parts.resize(std::max<std::size_t>(way + 1, parts.size() * 2));
  parts[way] = {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(rows)};
}

}  // namespace

void WayRows::add_branches(std::uint32_t way, std::span<const WayBranch> branches) {
  put_branches(way, branches, 0);
}

void WayRows::add_branches(std::uint32_t way, std::span<const WayBranch> branches,
                           const BranchChoice& choice) {
  const auto is_chosen = [&choice](const WayBranch& one) { return choice.has(one.kind, one.flags); };
  std::vector<WayBranch> chosen;
  std::copy_if(branches.begin(), branches.end(), std::back_inserter(chosen), is_chosen);
  put_branches(way, chosen, !branches.empty() && is_chosen(branches.back()) ? WayPart::kLast : 0);
}

void WayRows::put_branches(std::uint32_t way, std::span<const WayBranch> branches, std::uint32_t last) {
  if (branches.empty()) return put(branches_, way, 1, 0);
  put(branches_, way, groups_.size(), branches.size() | last);
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const std::size_t at = i % RowGroup::kRows;
    if (at == 0) groups_.emplace_back();
    groups_.back().from[at] = branches[i].from;
    groups_.back().to[at] = branches[i].to;
    groups_.back().kind[at] = static_cast<std::uint8_t>(branches[i].kind);
    groups_.back().flags[at] = branches[i].flags;
  }
}

void WayRows::add_blocks(std::uint32_t way, std::span<const WayBlock> blocks) {
  put(block_parts_, way, blocks_.size(), blocks.size());
  blocks_.insert(blocks_.end(), blocks.begin(), blocks.end());
}

}  // namespace ptkit::flow
