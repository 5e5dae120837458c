// Texts of a list that may be long: the first ones, and whether more follow.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace ptkit::formats {

class FirstNames {
 public:
  explicit FirstNames(std::string separator) : separator_(std::move(separator)) {}

  void add(const std::string& name) {
    constexpr std::size_t kMost = 3;
    if (count_ > kMost) return;
    if (count_ != 0) text_ += separator_;
    text_ += count_ == kMost ? "..." : name;
    ++count_;
  }
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string separator_;
  std::string text_;
  std::size_t count_ = 0;
};

}  // namespace ptkit::formats
