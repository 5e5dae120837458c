// Finds the name ranges of a bundle (trace::NameRange) that contain an address. Internal to src/symbol.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::symbol {

// An interval tree is not worth it: a trace has few lists, and ranges of one list do not overlap.
class NameRanges {
 public:
  explicit NameRanges(const std::vector<trace::NameRange>& ranges);

  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }

  // Calls `visit` with each range that contains the address and that the space sees.
  template <typename Visit>
  void at(trace::SpaceId space, std::uint64_t address, Visit&& visit) const {
    const auto above = std::ranges::upper_bound(ranges_, address, {}, &trace::NameRange::address);
    for (auto i = static_cast<std::size_t>(above - ranges_.begin()); i-- > 0 && last_[i] >= address;) {
      const trace::NameRange& range = ranges_[i];
      const bool is_seen = range.space == trace::kAnySpace || range.space == space;
      if (is_seen && address - range.address < range.size) visit(range);
    }
  }

 private:
  std::vector<trace::NameRange>
      ranges_;                       // sorted by address, none empty, none past the end of the address space
  std::vector<std::uint64_t> last_;  // the last address of all ranges up to and including this one
};

}  // namespace ptkit::symbol
