#include "code/symbol/code_places.h"

#include <utility>

namespace ptkit::code::symbol {

CodePlaces::CodePlaces(std::vector<Place> places) : places_(std::move(places)), farthest_(places_.size()) {
  std::ranges::stable_sort(places_, {}, [](const Place& one) { return std::pair(one.file, one.offset); });
  for (std::size_t begin = 0; begin < places_.size();) {
    const auto next = std::ranges::upper_bound(places_, places_[begin].file, {}, &Place::file);
    const auto end = static_cast<std::size_t>(next - places_.begin());
    set_farthest(begin, end);
    begin = end;
  }
}

std::uint64_t CodePlaces::set_farthest(std::size_t begin, std::size_t end) {
  if (begin == end) return 0;
  const std::size_t root = root_of(begin, end);
  farthest_[root] = std::max({last_of(places_[root].offset, places_[root].size), set_farthest(begin, root),
                              set_farthest(root + 1, end)});
  return farthest_[root];
}

void CodePlaces::find(std::size_t begin, std::size_t end, std::uint64_t first, std::uint64_t last,
                      std::vector<std::uint32_t>& found) const {
  while (begin != end) {
    const std::size_t root = root_of(begin, end);
    if (farthest_[root] < first) return;
    find(begin, root, first, last, found);
    const Place& place = places_[root];
    if (place.offset > last) return;
    if (last_of(place.offset, place.size) >= first) found.push_back(place.region);
    begin = root + 1;
  }
}

}  // namespace ptkit::code::symbol
