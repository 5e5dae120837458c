#include "code/symbol/code_spans.h"

#include <utility>

namespace ptkit::code::symbol {

CodeSpans::CodeSpans(std::vector<Span> spans) : spans_(std::move(spans)), farthest_(spans_.size()) {
  std::ranges::stable_sort(spans_, {}, [](const Span& one) { return std::pair(one.file, one.offset); });
  for (std::size_t begin = 0; begin < spans_.size();) {
    const auto next = std::ranges::upper_bound(spans_, spans_[begin].file, {}, &Span::file);
    const auto end = static_cast<std::size_t>(next - spans_.begin());
    set_farthest(begin, end);
    begin = end;
  }
}

std::uint64_t CodeSpans::set_farthest(std::size_t begin, std::size_t end) {
  if (begin == end) return 0;
  const std::size_t root = root_of(begin, end);
  farthest_[root] = std::max({last_of(spans_[root].offset, spans_[root].size), set_farthest(begin, root),
                              set_farthest(root + 1, end)});
  return farthest_[root];
}

void CodeSpans::find(std::size_t begin, std::size_t end, std::uint64_t first, std::uint64_t last,
                     std::vector<std::uint32_t>& found) const {
  while (begin != end) {
    const std::size_t root = root_of(begin, end);
    if (farthest_[root] < first) return;
    find(begin, root, first, last, found);
    const Span& span = spans_[root];
    if (span.offset > last) return;
    if (last_of(span.offset, span.size) >= first) found.push_back(span.region);
    begin = root + 1;
  }
}

}  // namespace ptkit::code::symbol
