// Searches through code for an instruction that is not on the path: they fail once, and not for each packet.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace ptkit::flow {

// The path that a search took without success, from an anchor on.
struct FailedSearch {
  std::uint64_t first = UINT64_MAX;  // addresses on the path: at least those
  std::uint64_t last = 0;
  std::uint64_t end = 0;  // where it ended

  void pass(std::uint64_t from, std::uint64_t to) noexcept {
    first = std::min(first, from);
    last = std::max(last, to);
  }
};

// A search has a kind, which says what the path is and what is looked for, and it may look for an address.
// Paths of one kind from different starts come to the same anchors. There a search begins anew, so that what
// it finds depends on the anchor alone, and looks here.
class FailedSearches {
 public:
  // Whether the block at `ip`, after `blocks` others, is the anchor of a path: one address in 16 is, and so
  // is the last block of a path to which none leads, as a short loop.
  [[nodiscard]] static bool is_anchor(std::uint64_t ip, std::uint64_t blocks) noexcept {
    constexpr std::uint64_t kFar = 256;
    return (ip * 0x9e3779b97f4a7c15ULL) >> 60U == 0 || blocks == kFar;
  }

  // The failed search from `anchor`, if it is known that none for `ip` (if any) finds anything.
  [[nodiscard]] const FailedSearch* find(std::uint64_t anchor, unsigned kind,
                                         std::optional<std::uint64_t> ip) const {
    const auto found = failed_.find({anchor, kind});
    if (found == failed_.end()) return nullptr;
    const FailedSearch& failed = found->second;
    const bool is_near = ip && *ip >= failed.first && *ip <= failed.last;
    return is_near && ips_.count({anchor, kind, *ip}) == 0 ? nullptr : &failed;
  }
  void add(std::uint64_t anchor, unsigned kind, std::optional<std::uint64_t> ip, const FailedSearch& failed) {
    if (failed_.size() + ips_.size() >= kMost) {
      failed_.clear();
      ips_.clear();
    }
    failed_[{anchor, kind}] = failed;
    if (ip) ips_.insert({anchor, kind, *ip});
  }
  [[nodiscard]] std::size_t bytes() const noexcept {  // of memory, approximately
    constexpr std::size_t kEntry = 96;
    return (failed_.size() + ips_.size()) * kEntry;
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 17U;

  std::map<std::pair<std::uint64_t, unsigned>, FailedSearch> failed_;
  std::set<std::tuple<std::uint64_t, unsigned, std::uint64_t>> ips_;
};

}  // namespace ptkit::flow
