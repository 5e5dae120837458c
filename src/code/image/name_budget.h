// A limit for the memory of the names in a file. Internal to src/code/image.
#pragma once

#include <cstddef>
#include <string_view>

namespace ptkit::code::image {

// All rows of a symbol table may refer to one long name, so a small file could need any amount of memory. In
// real files few rows share a name, and all names together are shorter than the file.
class NameBudget {
 public:
  explicit NameBudget(std::size_t file_bytes) noexcept : left_(file_bytes * kShared) {}

  // Returns false if the names exceed those of any real file: stop before this name.
  [[nodiscard]] bool take(std::string_view name) noexcept {
    left_ = name.size() < left_ ? left_ - name.size() : 0;
    return left_ != 0;
  }

 private:
  static constexpr std::size_t kShared = 4;

  std::size_t left_;
};

}  // namespace ptkit::code::image
