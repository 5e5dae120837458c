// Finds the name ranges of a bundle (trace::NameRange) that contain an address. Internal to src/code/symbol.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::code::symbol {

// An interval tree is not worth it: a trace has few lists, and ranges of one list do not overlap.
class NameRanges {
 public:
  explicit NameRanges(const std::vector<trace::NameRange>& ranges);

  [[nodiscard]] bool empty() const noexcept { return ranges_.empty(); }
  // The number of a range that at() gave.
  [[nodiscard]] std::uint32_t number_of(const trace::NameRange& range) const noexcept {
    return static_cast<std::uint32_t>(&range - ranges_.data());
  }

  // Calls `visit` with each range that contains the address then, and that the space sees.
  template <typename Visit>
  void at(trace::SpaceId space, std::uint64_t tsc, std::uint64_t address, Visit&& visit) const {
    const auto above = std::ranges::upper_bound(ranges_, address, {}, &trace::NameRange::address);
    for (auto i = static_cast<std::size_t>(above - ranges_.begin()); i-- > 0 && last_[i] >= address;) {
      const trace::NameRange& range = ranges_[i];
      const bool is_seen = range.space == trace::kAnySpace || range.space == space;
      const bool is_valid = range.tsc_from <= tsc && tsc < range.tsc_to;
      if (is_seen && is_valid && address - range.address < range.size) visit(range);
    }
  }
  // Calls `visit` with each range of a file that may contain the file offset.
  template <typename Visit>
  void of_file(std::int32_t file, std::uint64_t offset, Visit&& visit) const {
    const auto above = std::ranges::upper_bound(by_offset_, std::pair(file, offset), {},
                                                [this](std::uint32_t i) { return position_of(i); });
    for (auto i = static_cast<std::size_t>(above - by_offset_.begin()); i-- > 0;) {
      const trace::NameRange& range = ranges_[by_offset_[i]];
      if (range.file != file) return;
      // Ranges of JIT code do not overlap in their file, but may be there in several spaces.
      if (range.is_module && offset - range.file_offset >= range.size) return;
      visit(range);
    }
  }

 private:
  [[nodiscard]] std::pair<std::int32_t, std::uint64_t> position_of(std::uint32_t i) const noexcept {
    return {ranges_[i].file, ranges_[i].file_offset};
  }

  std::vector<trace::NameRange>
      ranges_;                       // sorted by address, none empty, none past the end of the address space
  std::vector<std::uint64_t> last_;  // the last address of all ranges up to and including this one
  std::vector<std::uint32_t> by_offset_;  // numbers of ranges, sorted by file and offset
};

inline NameRanges::NameRanges(const std::vector<trace::NameRange>& ranges) {
  for (const trace::NameRange& range : ranges) {
    if (range.size != 0 && range.size - 1 <= ~range.address) ranges_.push_back(range);
  }
  std::ranges::stable_sort(ranges_, {}, &trace::NameRange::address);
  std::uint64_t last = 0;
  for (const trace::NameRange& range : ranges_) {
    last = std::max(last, range.address + (range.size - 1));
    last_.push_back(last);
    by_offset_.push_back(static_cast<std::uint32_t>(by_offset_.size()));
  }
  std::ranges::stable_sort(by_offset_, {}, [this](std::uint32_t i) { return position_of(i); });
}

}  // namespace ptkit::code::symbol
