#include "code/source/spans.h"

#include <algorithm>

#include "base/interval_map.h"

namespace ptkit::code::source {

void Spans::finish() {
  std::vector<Span> sorted = spans_;
  std::ranges::sort(sorted, {}, &Span::first);
  const auto overlap = std::ranges::adjacent_find(
      sorted, [](const Span& one, const Span& next) { return next.first <= one.last; });
  if (overlap == sorted.end()) {
    spans_ = std::move(sorted);
    return;
  }
  base::IntervalMap<std::uint32_t> map;
  for (const Span& span : spans_) map.assign(span.first, span.last, span.value);
  spans_.clear();
  for (const auto& [first, entry] : map) spans_.push_back({first, entry.last, entry.value});
  spans_.shrink_to_fit();
}

Spans::Span Spans::span_at(std::uint64_t address) const noexcept {
  const auto above = std::ranges::upper_bound(spans_, address, {}, &Span::first);
  Span gap{0, above == spans_.end() ? ~std::uint64_t{0} : above->first - 1, kNone};
  if (above == spans_.begin()) return gap;
  const Span& span = *std::prev(above);
  if (address <= span.last) return span;
  gap.first = span.last + 1;
  return gap;
}

std::uint32_t Spans::at(std::uint64_t address) const noexcept { return span_at(address).value; }

std::uint32_t Spans::at(std::uint64_t address, std::uint64_t& first, std::uint64_t& last) const noexcept {
  const Span span = span_at(address);
  first = std::max(first, span.first);
  last = std::min(last, span.last);
  return span.value;
}

}  // namespace ptkit::code::source
