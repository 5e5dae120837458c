#include "capture/linux/process/address_filter.h"

#include <algorithm>

namespace ptkit::capture {

namespace {

using Range = AddressFilter::Range;
using Point = AddressFilter::Point;
using FilterKind = FilterRequest::Kind;

bool inside(const std::vector<Range>& ranges, std::uint64_t ip) noexcept {
  return std::any_of(ranges.begin(), ranges.end(),
                     [ip](const Range& range) { return ip >= range.first && ip <= range.last; });
}

bool is_before(const Point& point, std::uint64_t address) noexcept { return point.address < address; }

void insert(std::vector<Point>& points, const Point& point) {
  const auto order = [](const Point& a, const Point& b) {
    return a.address != b.address ? a.address < b.address : a.kind < b.kind;
  };
  points.insert(std::upper_bound(points.begin(), points.end(), point, order), point);
}

}  // namespace

bool AddressFilter::Rules::traced(std::uint64_t ip) const noexcept {
  return !filters_only_ || inside(filters_, ip);
}

bool AddressFilter::Rules::stops(std::uint64_t ip) const noexcept { return inside(stops_, ip); }

std::span<const Point> AddressFilter::Rules::points(std::uint64_t begin, std::uint64_t end) const noexcept {
  const auto first = std::lower_bound(points_.begin(), points_.end(), begin, is_before);
  return {first, std::lower_bound(first, points_.end(), end, is_before)};
}

AddressFilter::AddressFilter(std::span<const FilterRequest> requests) {
  auto rules = std::make_unique<Rules>();
  for (const FilterRequest& request : requests) {
    rules->filters_only_ |= request.kind == FilterKind::FILTER;
    rules->starts_ |= request.kind == FilterKind::START;
  }
  current_.store(versions_.emplace_back(std::move(rules)).get(), std::memory_order_release);
}

template <typename Change>
void AddressFilter::change(const Change& make) {
  const std::lock_guard lock(mutex_);
  auto next = std::make_unique<Rules>(*versions_.back());
  make(*next);
  current_.store(versions_.emplace_back(std::move(next)).get(), std::memory_order_release);
}

void AddressFilter::add(FilterKind kind, std::uint64_t first, std::uint64_t last) {
  change([&](Rules& rules) {
    switch (kind) {
      case FilterKind::FILTER:
        rules.filters_only_ = true;
        rules.filters_.push_back({first, last});
        return;
      case FilterKind::TRACESTOP:
        rules.stops_.push_back({first, last});
        return;
      case FilterKind::START:
        rules.starts_ = true;
        return insert(rules.points_, {first, Point::Kind::START, 0});
      case FilterKind::STOP:
        return insert(rules.points_, {first, Point::Kind::STOP, 0});
    }
  });
}

void AddressFilter::watch(std::uint64_t address, std::uint32_t id) {
  change([&](Rules& rules) { insert(rules.points_, {address, Point::Kind::WATCH, id}); });
}

}  // namespace ptkit::capture
