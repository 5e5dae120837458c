#include "capture/linux/emulator/filter_ranges.h"

#include <algorithm>

namespace ptkit::capture {

namespace {

void append(trace::RangeKind kind, const ProcessRanges::Set& ranges, std::vector<trace::AddressRange>& out) {
  const std::size_t begin = out.size();
  for (const auto& [first, last] : ranges) {
    if (out.size() != begin && (first <= out.back().last || first == out.back().last + 1))
      out.back().last = std::max(out.back().last, last);
    else
      out.push_back({kind, first, last});
  }
}

}  // namespace

bool ProcessRanges::add(FilterRequest::Kind kind, std::uint64_t first, std::uint64_t last) {
  if (kind == FilterRequest::Kind::FILTER) return filters.emplace(first, last).second;
  if (kind == FilterRequest::Kind::TRACESTOP) return stops.emplace(first, last).second;
  return false;
}

void FilterRanges::add(const ProcessRanges& process) {
  if (filters_only_ && process.filters.empty()) return;
  filters_.insert(process.filters.begin(), process.filters.end());
  if (!stops_) stops_ = process.stops;
  stops_differ_ |= process.stops_late || process.stops != *stops_;
}

std::vector<trace::AddressRange> FilterRanges::common() const {
  std::vector<trace::AddressRange> ranges;
  if (stops_differ_ || !stops_) return ranges;
  append(trace::RangeKind::FILTER, filters_, ranges);
  append(trace::RangeKind::TRACE_STOP, *stops_, ranges);
  if (ranges.size() > trace::Configuration().ranges.size()) ranges.clear();
  return ranges;
}

}  // namespace ptkit::capture
