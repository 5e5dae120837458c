#include "trace/build_id.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ptkit::trace {

namespace {

constexpr std::size_t kMostDigits = 40;                       // a SHA-1 sum, the field of perf's records
constexpr std::array<std::size_t, 2> kShorterDigits{16, 32};  // lld's `fast` ids; MD5 sums and UUIDs

// Digits up to the last byte that is not zero.
std::size_t digits_before_zeros(std::string_view id) noexcept {
  const std::size_t last = id.find_last_not_of('0');
  return last == std::string_view::npos ? 0 : std::min(id.size(), (last / 2 + 1) * 2);
}

}  // namespace

BuildId::BuildId(std::string id, bool padded) : text(std::move(id)), is_padded(padded) {
  const std::size_t used = digits_before_zeros(text);
  if (used == 0) text.clear();
  if (text.empty() || !is_padded) return;
  const auto fits = [&](std::size_t digits) { return digits >= used && digits < text.size(); };
  const auto shorter = std::ranges::find_if(kShorterDigits, fits);
  if (shorter != kShorterDigits.end()) text.resize(*shorter);
}

bool BuildId::is_of(std::string_view file_id) const noexcept {
  if (text.empty() || file_id.empty()) return false;
  if (text.size() == kMostDigits) file_id = file_id.substr(0, kMostDigits);  // perf cuts longer ids
  if (!is_padded) return text == file_id;
  return file_id.size() <= kMostDigits && file_id.substr(0, digits_before_zeros(file_id)) ==
                                              std::string_view(text).substr(0, digits_before_zeros(text));
}

std::vector<std::string> BuildId::candidates() const {
  if (text.empty()) return {};
  std::vector<std::string> ids{text};
  if (!is_padded) return ids;
  for (std::size_t digits = digits_before_zeros(text); digits <= kMostDigits; digits += 2) {
    std::string id = text.substr(0, std::min(digits, text.size()));
    id.resize(digits, '0');
    if (id != text) ids.push_back(std::move(id));
  }
  return ids;
}

}  // namespace ptkit::trace
