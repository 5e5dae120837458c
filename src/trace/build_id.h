// Compares recorded identities of files with those of files: GNU build-ids, in hex.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace ptkit::trace {

// A recorded build-id. perf before 5.13 pads ids with zeros to 20 bytes and does not record their length.
// Such an id is that of a file if it is the file's id followed by zeros. Of longer ids perf records the first
// 20 bytes.
struct BuildId {
  std::string text;        // empty: none. Of a padded id without zeros that exceed a common length
  bool is_padded = false;  // the length is unknown: the file's id may have fewer or more zeros at its end

  BuildId() = default;
  // An id of zeros alone is none.
  BuildId(std::string id, bool padded);
  [[nodiscard]] bool empty() const noexcept { return text.empty(); }
  // False if one of the two is none.
  [[nodiscard]] bool is_of(std::string_view file_id) const noexcept;
  // The ids that the file may have, with folders of files by id in mind.
  [[nodiscard]] std::vector<std::string> candidates() const;
  [[nodiscard]] bool operator==(const BuildId&) const = default;
  [[nodiscard]] bool operator<(const BuildId& other) const noexcept {
    return std::tie(text, is_padded) < std::tie(other.text, other.is_padded);
  }
};

}  // namespace ptkit::trace
