// Names and paths, each once.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "code/source/budget.h"
#include "code/source/no_number.h"

namespace ptkit::code::source {

class Strings {
 public:
  Strings() = default;
  Strings(Strings&&) = default;  // a copy would refer to the texts of the original
  Strings& operator=(Strings&&) = default;

  // The number of a string; kNone if the budget is spent or there is no text.
  [[nodiscard]] std::uint32_t number(const char* text, Budget& budget) {
    if (text == nullptr || *text == '\0') return kNone;
    const std::string_view view(text);
    if (const auto known = numbers_.find(view); known != numbers_.end()) return known->second;
    if (!budget.take(1 + view.size())) return kNone;
    const auto number = static_cast<std::uint32_t>(texts_.size());
    numbers_.emplace(texts_.emplace_back(view), number);
    return number;
  }
  // Valid as long as this object; empty for kNone.
  [[nodiscard]] std::string_view text(std::uint32_t number) const {
    return number == kNone ? std::string_view{} : std::string_view(texts_[number]);
  }

 private:
  std::deque<std::string> texts_;  // does not move its elements
  std::unordered_map<std::string_view, std::uint32_t> numbers_;
};

}  // namespace ptkit::code::source
