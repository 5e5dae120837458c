#include "formats/perf_data/overlap.h"

#include <algorithm>
#include <vector>

#include "packet/decoder.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kCommonBytes = 4096;
constexpr std::size_t kMostPadding = 7;

// Knuth-Morris-Pratt search on a stream of bytes: linear time for any contents.
class Matcher {
 public:
  explicit Matcher(base::Bytes pattern) : pattern_(pattern), border_(pattern.size() + 1, 0) {
    for (std::size_t i = 1, matched = 0; i < pattern.size(); ++i) {
      matched = extend(matched, pattern[i]);
      border_[i + 1] = matched;
    }
  }
  // matched() becomes the length of the longest prefix of the pattern that the bytes end with.
  void push(std::uint8_t byte) { matched_ = extend(full() ? border_[matched_] : matched_, byte); }
  [[nodiscard]] std::size_t matched() const noexcept { return matched_; }
  [[nodiscard]] bool full() const noexcept { return matched_ == pattern_.size(); }

 private:
  [[nodiscard]] std::size_t extend(std::size_t matched, std::uint8_t byte) const noexcept {
    while (matched > 0 && pattern_[matched] != byte) matched = border_[matched];
    return pattern_[matched] == byte ? matched + 1 : 0;
  }

  base::Bytes pattern_;
  std::vector<std::size_t> border_;  // failure function: longest proper border of each prefix
  std::size_t matched_ = 0;
};

// Returns the offset after the first occurrence of `tail` in `newer`; 0: none.
std::size_t find_after(base::Bytes tail, base::Bytes newer) {
  Matcher matcher(tail);
  for (std::size_t i = 0; i < newer.size(); ++i) {
    matcher.push(newer[i]);
    if (matcher.full()) return i + 1;
  }
  return 0;
}

// Returns the length of the longest prefix of `newer` that is a suffix of `older`.
std::size_t common_border(base::Bytes older, base::Bytes newer) {
  const std::size_t most = std::min(older.size(), newer.size());
  if (most == 0) return 0;
  Matcher matcher(newer.first(most));
  for (const std::uint8_t byte : older.last(most)) matcher.push(byte);
  return matcher.matched();
}

}  // namespace

std::optional<Overlap> find_overlap(base::Bytes older, base::Bytes newer) {
  Overlap overlap;
  for (; overlap.padding <= kMostPadding && !older.empty(); ++overlap.padding) {
    if (older.size() >= kCommonBytes) overlap.repeated = find_after(older.last(kCommonBytes), newer);
    if (overlap.repeated != 0) return overlap;
    overlap.repeated = common_border(older, newer);
    const base::Bytes common = newer.first(overlap.repeated);
    if (packet::find_psb(common, 0) != common.size()) return overlap;
    overlap.repeated = 0;
    if (older.back() != 0) break;
    older = older.first(older.size() - 1);
  }
  return std::nullopt;
}

}  // namespace ptkit::formats::perf
