#include "tables/calls/timeline/band_lists.h"

#include <algorithm>
#include <utility>

namespace ptkit::tables::calls {
namespace {

// Where a band of a kind begins (+1) or ends (-1).
struct Limit {
  std::uint64_t position = 0;
  int change = 0;
  std::size_t kind = 0;
};

void sort_by_begin(std::vector<Band>& bands) {
  std::ranges::stable_sort(bands, [](const Band& a, const Band& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
}

[[nodiscard]] std::uint64_t gap(const Band& band, const Band& next) noexcept {
  return next.begin - std::min(band.end, next.begin);
}

}  // namespace

void BandLists::add(const Band& band) {
  std::vector<Band>& bands = of_kind_[static_cast<std::size_t>(band.kind)];
  bands.push_back(band);
  if (bands.size() >= 2 * kMost) shrink(bands, kMost);
}

void BandLists::clear() noexcept {
  for (std::vector<Band>& bands : of_kind_) bands.clear();
  merged_ = 0;
}

std::uint64_t BandLists::bytes() const noexcept {
  std::uint64_t sum = 0;
  for (const std::vector<Band>& bands : of_kind_) sum += bands.capacity() * sizeof(Band);
  return sum;
}

// Of bands of one kind.
void BandLists::shrink(std::vector<Band>& bands, std::size_t most) {
  sort_by_begin(bands);
  if (bands.size() <= most) return;
  const std::size_t closed = bands.size() - most;
  std::vector<std::uint64_t> gaps;
  for (std::size_t i = 1; i < bands.size(); ++i) gaps.push_back(gap(bands[i - 1], bands[i]));
  std::vector<std::uint64_t> sorted = gaps;
  const auto limit = sorted.begin() + static_cast<std::ptrdiff_t>(closed - 1);
  std::ranges::nth_element(sorted, limit);
  std::size_t equal = closed - static_cast<std::size_t>(std::ranges::count_if(
                                   gaps, [&](std::uint64_t length) { return length < *limit; }));
  std::size_t last = 0;
  for (std::size_t i = 1; i < bands.size(); ++i) {
    const bool closes = gaps[i - 1] < *limit || (gaps[i - 1] == *limit && equal != 0);
    if (!closes) {
      bands[++last] = bands[i];
      continue;
    }
    if (gaps[i - 1] == *limit) --equal;
    bands[last].end = std::max(bands[last].end, bands[i].end);
    ++merged_;
  }
  bands.resize(last + 1);
}

std::vector<Band> BandLists::all() {
  std::vector<Band> found;
  std::vector<Limit> limits;
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    shrink(of_kind_[kind], kMost);
    for (const Band& band : of_kind_[kind]) {
      if (band.begin == band.end) {
        if (band.kind == Band::Kind::LOST) found.push_back(band);
        continue;
      }
      limits.push_back({band.begin, 1, kind});
      limits.push_back({band.end, -1, kind});
    }
  }
  std::ranges::sort(limits, {}, &Limit::position);
  std::array<int, kKinds> open{};
  const auto highest = [&open] {
    std::size_t kind = kKinds;
    while (kind > 0 && open[kind - 1] == 0) --kind;
    return kind;  // 0: none; else 1 + the kind
  };
  std::uint64_t begin = 0;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < limits.size();) {
    const std::uint64_t position = limits[i].position;
    for (; i < limits.size() && limits[i].position == position; ++i) open[limits[i].kind] += limits[i].change;
    const std::size_t next = highest();
    if (next == shown) continue;
    if (shown != 0) found.push_back({begin, position, static_cast<Band::Kind>(shown - 1)});
    begin = position;
    shown = next;
  }
  sort_by_begin(found);
  return found;
}

BandLists BandLists::joined(std::span<const Part> parts) {
  BandLists all;
  std::vector<Limit> limits;
  std::uint64_t begin = UINT64_MAX;
  std::uint64_t end = 0;
  for (const Part& part : parts) {
    begin = std::min(begin, part.begin);
    end = std::max(end, part.end);
  }
  const auto add_switched = [&limits](std::uint64_t from, std::uint64_t until) {
    if (from >= until) return;
    limits.push_back({from, 1, 0});
    limits.push_back({until, -1, 0});
  };
  for (const Part& part : parts) {
    all.merged_ += part.bands->merged_;
    add_switched(begin, part.begin);
    add_switched(part.end, end);
    for (std::vector<Band>& bands : part.bands->of_kind_) {
      for (const Band& band : bands) {
        if (band.kind != Band::Kind::SWITCHED) {
          all.of_kind_[static_cast<std::size_t>(band.kind)].push_back(band);
        } else {
          add_switched(std::max(band.begin, part.begin), std::min(band.end, part.end));
        }
      }
    }
  }
  std::ranges::sort(limits, {}, &Limit::position);
  std::size_t open = 0;
  std::uint64_t since = 0;
  for (std::size_t i = 0; i < limits.size();) {
    const std::uint64_t position = limits[i].position;
    const bool was_out = open >= parts.size();
    for (; i < limits.size() && limits[i].position == position; ++i)
      open = limits[i].change > 0 ? open + 1 : open - 1;
    const bool is_out = open >= parts.size();
    if (was_out && !is_out) all.add({since, position, Band::Kind::SWITCHED});
    if (!was_out && is_out) since = position;
  }
  return all;
}

}  // namespace ptkit::tables::calls
