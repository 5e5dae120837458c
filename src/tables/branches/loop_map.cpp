#include "tables/branches/loop_map.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace ptkit::tables::branches {

LoopMap::LoopMap(std::vector<Loop> loops, std::vector<LoopCode> code)
    : loops_(std::move(loops)), code_(std::move(code)) {
  for (std::size_t i = 0; i < loops_.size(); ++i)
    heads_.push_back({loops_[i].space, loops_[i].head, static_cast<std::int32_t>(i)});
  std::ranges::sort(heads_, {}, [](const Head& head) { return std::tuple(head.space, head.ip); });
}

const LoopCode* LoopMap::at(trace::SpaceId space, std::uint64_t ip) const noexcept {
  const auto key = [](const LoopCode& code) { return std::tuple(code.space, code.first); };
  const auto next = std::ranges::upper_bound(code_, std::tuple(space, ip), {}, key);
  if (next == code_.begin()) return nullptr;
  const LoopCode& code = *std::prev(next);
  return code.space == space && ip <= code.last ? &code : nullptr;
}

std::span<const LoopMap::Head> LoopMap::heads(trace::SpaceId space, std::uint64_t first,
                                              std::uint64_t end) const noexcept {
  if (first >= end) return {};
  const auto key = [](const Head& head) { return std::tuple(head.space, head.ip); };
  const auto begin = std::ranges::lower_bound(heads_, std::tuple(space, first), {}, key);
  return {begin, std::ranges::lower_bound(begin, heads_.end(), std::tuple(space, end), {}, key)};
}

}  // namespace ptkit::tables::branches
