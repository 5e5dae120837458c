#include "code/symbol/names/similar_names.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/ascii.h"
#include "code/symbol/names/short_name.h"

namespace ptkit::code::symbol {
namespace {

constexpr std::size_t kLeastContained = 3;  // letters of a name that may be contained in similar ones

std::size_t parts_of(std::string_view name) noexcept {
  std::size_t parts = 1;
  for (std::size_t at = name.find(kScope); at != std::string_view::npos; at = name.find(kScope, at + 2))
    ++parts;
  return parts;
}

std::string_view last_parts(std::string_view name, std::size_t parts) noexcept {
  std::size_t begin = std::string_view::npos;
  for (; parts > 0 && begin != 0; --parts) {
    begin = name.rfind(kScope, begin == std::string_view::npos ? begin : begin - 1);
    if (begin == std::string_view::npos) return name;
  }
  return name.substr(begin + kScope.size());
}

}  // namespace

SimilarNames::SimilarNames(std::string_view wanted, std::size_t limit)
    : wanted_(base::ascii_lower(without_variant(short_name(wanted)))),
      parts_(parts_of(wanted_)),
      limit_(limit),
      most_edits_(std::max<std::size_t>(1, wanted_.size() / 3)),
      row_(wanted_.size() + 1),
      above_(wanted_.size() + 1),
      next_(wanted_.size() + 1) {}

void SimilarNames::add(std::string_view name) {
  std::string short_form = short_name(name);
  if (const auto found = rank(short_form)) ranked_.emplace(*found, std::move(short_form));
  if (ranked_.size() > limit_) ranked_.erase(std::prev(ranked_.end()));
}

std::vector<std::string> SimilarNames::names() const {
  std::vector<std::string> names;
  names.reserve(ranked_.size());
  for (const auto& [rank, text] : ranked_) names.push_back(text);
  return names;
}

std::optional<std::size_t> SimilarNames::rank(std::string_view short_form) {
  const std::string lower = base::ascii_lower(short_form);
  const std::string_view whole = without_variant(lower);
  const std::string_view last = last_parts(whole, parts_);
  std::size_t distance = edit_distance(whole);
  if (last.size() != whole.size()) distance = std::min(distance, edit_distance(last));
  if (distance <= most_edits_) return distance;
  if (wanted_.size() >= kLeastContained && whole.find(wanted_) != std::string_view::npos)
    return most_edits_ + 1;
  return std::nullopt;
}

// The distance of optimal string alignment (Levenshtein's, and two letters that changed positions count as
// one edit), row by row; more than most_edits_ if it is larger.
std::size_t SimilarNames::edit_distance(std::string_view other) {
  const std::size_t size = wanted_.size();
  if (std::max(size, other.size()) - std::min(size, other.size()) > most_edits_) return most_edits_ + 1;
  std::iota(row_.begin(), row_.end(), std::size_t{0});
  for (std::size_t j = 0; j < other.size(); ++j) {
    next_[0] = j + 1;
    std::size_t least = next_[0];
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t replaced = row_[i] + (wanted_[i] == other[j] ? 0 : 1);
      next_[i + 1] = std::min({replaced, row_[i + 1] + 1, next_[i] + 1});
      const bool swapped = i > 0 && j > 0 && wanted_[i] == other[j - 1] && wanted_[i - 1] == other[j];
      if (swapped) next_[i + 1] = std::min(next_[i + 1], above_[i - 1] + 1);
      least = std::min(least, next_[i + 1]);
    }
    if (least > most_edits_) return most_edits_ + 1;
    std::swap(above_, row_);
    std::swap(row_, next_);
  }
  return row_[size];
}

}  // namespace ptkit::code::symbol
