// Addresses that are selected, in some address spaces or in all.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "tables/columns/request.h"

namespace ptkit::tables::columns {

class IpSet {
 public:
  // Ranges may overlap.
  explicit IpSet(std::span<const IpRange> ranges);

  // Nothing is selected by its address.
  [[nodiscard]] bool empty() const noexcept { return in_all_.empty() && in_some_.empty(); }
  // Whether one of [first, last] is selected.
  [[nodiscard]] bool meets(std::uint64_t first, std::uint64_t last, trace::SpaceId space) const noexcept {
    if (meets(in_all_, first, last)) return true;
    if (in_some_.empty()) return false;
    const auto found = in_some_.find(space);
    return found != in_some_.end() && meets(found->second, first, last);
  }
  [[nodiscard]] bool has(std::uint64_t ip, trace::SpaceId space) const noexcept {
    return meets(ip, ip, space);
  }

 private:
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  using Ranges = std::vector<Range>;  // ascending, apart from each other

  [[nodiscard]] static bool meets(const Ranges& ranges, std::uint64_t first, std::uint64_t last) noexcept {
    std::size_t low = 0;  // ranges before it begin at `last` or below
    for (std::size_t left = ranges.size(); left > 0;) {
      const std::size_t half = left / 2;
      const bool begins = ranges[low + half].first <= last;
      low = begins ? low + half + 1 : low;
      left = begins ? left - half - 1 : half;
    }
    return low > 0 && ranges[low - 1].last >= first;
  }

  Ranges in_all_;
  std::map<trace::SpaceId, Ranges> in_some_;
};

}  // namespace ptkit::tables::columns
