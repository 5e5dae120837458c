#include "flow/walk/address_filter.h"

#include <algorithm>

namespace ptkit::flow {

AddressFilter::AddressFilter(const trace::Configuration& configuration)
    : ranges_(configuration.ranges), space_ranges_(configuration.space_ranges) {
  const auto note = [this](const trace::AddressRange& range) {
    if (range.kind != trace::RangeKind::OFF) known_ = true;
    if (range.kind == trace::RangeKind::FILTER) has_filter_ = true;
  };
  for (const trace::AddressRange& range : ranges_) note(range);
  for (const trace::SpaceRange& one : space_ranges_) note(one.range);
  absent_ = configuration.ranges_known && !known_;
  std::ranges::stable_sort(space_ranges_, {}, &trace::SpaceRange::space);
  enter(trace::kAnySpace);
}

void AddressFilter::enter(trace::SpaceId space) noexcept {
  const auto first = std::ranges::lower_bound(space_ranges_, space, {}, &trace::SpaceRange::space);
  const auto end = std::ranges::upper_bound(space_ranges_, space, {}, &trace::SpaceRange::space);
  begin_ = static_cast<std::size_t>(first - space_ranges_.begin());
  end_ = static_cast<std::size_t>(end - space_ranges_.begin());
  if (space != trace::kAnySpace) return;
  any_ = end_;
  end_ = space_ranges_.size();
}

bool AddressFilter::traced(std::uint64_t ip) const noexcept {
  bool inside = !has_filter_;
  bool stops = false;
  const auto apply = [&](const trace::AddressRange& range) {
    if (range.kind == trace::RangeKind::OFF || ip < range.first || ip > range.last) return;
    if (range.kind == trace::RangeKind::TRACE_STOP) stops = true;
    inside = true;
  };
  for (const trace::AddressRange& range : ranges_) apply(range);
  for (std::size_t i = 0; i < any_; ++i) apply(space_ranges_[i].range);
  for (std::size_t i = begin_; i < end_; ++i) apply(space_ranges_[i].range);
  return inside && !stops;
}

}  // namespace ptkit::flow
