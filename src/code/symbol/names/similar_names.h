// Names that are similar to one that does not exist, for error messages.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptkit::code::symbol {

// Keeps those of many names that are nearest to a wanted one. Short forms are compared: whole, and as many of
// their last parts as the wanted name has, so that "parze" is near "store::parse(int)", and "Map::inzert"
// near "ns::Map<int>::insert(int)".
class SimilarNames {
 public:
  SimilarNames(std::string_view wanted, std::size_t limit);

  void add(std::string_view name);
  // Short forms, the nearest ones first, at most `limit`.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  // A rank of similarity, lower is closer. nullopt if the names are not similar.
  [[nodiscard]] std::optional<std::size_t> rank(std::string_view short_form);
  [[nodiscard]] std::size_t edit_distance(std::string_view other);

  std::string wanted_;  // in lower case
  std::size_t parts_;   // of the wanted name
  std::size_t limit_;
  std::size_t most_edits_;
  std::vector<std::size_t> row_, above_, next_;  // of edit_distance()
  std::set<std::pair<std::size_t, std::string>> ranked_;
};

}  // namespace ptkit::code::symbol
