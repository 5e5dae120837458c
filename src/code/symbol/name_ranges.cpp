#include "code/symbol/name_ranges.h"

namespace ptkit::code::symbol {

NameRanges::NameRanges(const std::vector<trace::NameRange>& ranges) {
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
  std::ranges::stable_sort(by_offset_, {}, [this](std::uint32_t i) { return place_of(i); });
}

}  // namespace ptkit::code::symbol
