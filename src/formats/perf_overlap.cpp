#include "formats/perf_overlap.h"

#include <algorithm>
#include <vector>

#include "packet/decoder.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kCommonBytes = 4096;
constexpr std::size_t kMostPadding = 7;

// Finds a pattern in bytes that come one by one (Knuth, Morris, Pratt): the time that it takes does not
// depend on what the bytes are.
class Matcher {
 public:
  explicit Matcher(base::Bytes pattern) : pattern_(pattern), shorter_(pattern.size() + 1, 0) {
    for (std::size_t i = 1, matched = 0; i < pattern.size(); ++i) {
      matched = extend(matched, pattern[i]);
      shorter_[i + 1] = matched;
    }
  }
  // How much of the pattern the bytes up to this one end with.
  void take(std::uint8_t byte) { matched_ = extend(full() ? shorter_[matched_] : matched_, byte); }
  [[nodiscard]] std::size_t matched() const noexcept { return matched_; }
  [[nodiscard]] bool full() const noexcept { return matched_ == pattern_.size(); }

 private:
  [[nodiscard]] std::size_t extend(std::size_t matched, std::uint8_t byte) const noexcept {
    while (matched > 0 && pattern_[matched] != byte) matched = shorter_[matched];
    return pattern_[matched] == byte ? matched + 1 : 0;
  }

  base::Bytes pattern_;
  std::vector<std::size_t> shorter_;  // the longest shorter match that ends in the same bytes
  std::size_t matched_ = 0;
};

// Behind the first place of `newer` that has all of `tail`; 0: there is none.
std::size_t find_whole(base::Bytes tail, base::Bytes newer) {
  Matcher matcher(tail);
  for (std::size_t i = 0; i < newer.size(); ++i) {
    matcher.take(newer[i]);
    if (matcher.full()) return i + 1;
  }
  return 0;
}

// The longest beginning of `newer` that `older` ends with.
std::size_t find_part(base::Bytes older, base::Bytes newer) {
  const std::size_t most = std::min(older.size(), newer.size());
  if (most == 0) return 0;
  Matcher matcher(newer.first(most));
  for (const std::uint8_t byte : older.last(most)) matcher.take(byte);
  return matcher.matched();
}

}  // namespace

std::optional<Overlap> find_overlap(base::Bytes older, base::Bytes newer) {
  Overlap overlap;
  for (; overlap.padding <= kMostPadding && !older.empty(); ++overlap.padding) {
    if (older.size() >= kCommonBytes) overlap.repeated = find_whole(older.last(kCommonBytes), newer);
    if (overlap.repeated != 0) return overlap;
    overlap.repeated = find_part(older, newer);
    const base::Bytes common = newer.first(overlap.repeated);
    if (packet::find_psb(common, 0) != common.size()) return overlap;
    overlap.repeated = 0;
    if (older.back() != 0) break;
    older = older.first(older.size() - 1);
  }
  return std::nullopt;
}

}  // namespace ptkit::formats::perf
