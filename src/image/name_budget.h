// How much the names in a file may take in memory. Internal to src/image.
#pragma once

#include <cstddef>
#include <string_view>

namespace ptkit::image {

// Rows of a table may all point at one long name: a small file could ask for any amount. Linkers let few rows
// share a name, so that all names together take less than the file.
class NameBudget {
 public:
  explicit NameBudget(std::size_t file_bytes) noexcept : left_(file_bytes * kShared) {}

  // False: that is more than any real file has; neither this name nor those behind it are read.
  [[nodiscard]] bool take(std::string_view name) noexcept {
    left_ = name.size() < left_ ? left_ - name.size() : 0;
    return left_ != 0;
  }

 private:
  static constexpr std::size_t kShared = 4;

  std::size_t left_;
};

}  // namespace ptkit::image
