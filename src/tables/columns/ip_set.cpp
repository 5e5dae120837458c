#include "tables/columns/ip_set.h"

#include <algorithm>

namespace ptkit::tables::columns {

IpSet::IpSet(std::span<const IpRange> ranges) {
  std::vector<IpRange> sorted(ranges.begin(), ranges.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const IpRange& a, const IpRange& b) { return a.first < b.first; });
  for (const IpRange& range : sorted) {
    Ranges& own = range.space == kEverySpace ? in_all_ : in_some_[range.space];
    if (!own.empty() && own.back().last >= range.first) {
      own.back().last = std::max(own.back().last, range.last);
    } else {
      own.push_back({range.first, range.last});
    }
  }
}

}  // namespace ptkit::tables::columns
