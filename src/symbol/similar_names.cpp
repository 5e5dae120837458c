#include "symbol/similar_names.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace ptkit::symbol {
namespace {

// The Levenshtein distance of two names; `limit` + 1 if it is larger than `limit`.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit) return limit + 1;
  std::vector<std::size_t> row(a.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t j = 0; j < b.size(); ++j) {
    std::size_t diagonal = row[0];
    row[0] = j + 1;
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[i + 1];
      row[i + 1] = std::min({replaced, row[i] + 1, row[i + 1] + 1});
    }
    if (*std::min_element(row.begin(), row.end()) > limit) return limit + 1;
  }
  return std::min(row.back(), limit + 1);
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& letter : lower) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return lower;
}

std::optional<std::size_t> similarity(const std::string& wanted, std::string_view candidate) {
  const std::string whole = lower_case(candidate);
  const std::size_t limit = std::max<std::size_t>(1, wanted.size() / 3);
  const std::size_t scope = whole.rfind("::");
  const std::string_view last =
      scope == std::string::npos ? whole : std::string_view(whole).substr(scope + 2);
  const std::size_t distance =
      std::min(edit_distance(wanted, whole, limit), edit_distance(wanted, last, limit));
  if (distance <= limit) return distance;
  if (wanted.size() >= 3 && whole.find(wanted) != std::string::npos) return limit + 1;
  return std::nullopt;
}

}  // namespace ptkit::symbol
