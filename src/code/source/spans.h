// Address ranges with a number each, made disjoint.
#pragma once

#include <cstdint>
#include <vector>

#include "code/source/no_number.h"

namespace ptkit::code::source {

class Spans {
 public:
  // Addresses [first, last]. A later range hides earlier ones.
  void add(std::uint64_t first, std::uint64_t last, std::uint32_t value) {
    spans_.push_back({first, last, value});
  }
  // Call once, after the last add().
  void finish();
  struct Span {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint32_t value = kNone;
  };
  // The range that has the address, or the gap between ranges, with kNone.
  [[nodiscard]] Span span_at(std::uint64_t address) const noexcept;
  // The number of the range that has the address, or kNone.
  [[nodiscard]] std::uint32_t at(std::uint64_t address) const noexcept;
  // Also cuts [first, last], which has the address, to addresses of which it is the number.
  [[nodiscard]] std::uint32_t at(std::uint64_t address, std::uint64_t& first,
                                 std::uint64_t& last) const noexcept;
  [[nodiscard]] bool empty() const noexcept { return spans_.empty(); }
  // After finish(): sorted and disjoint.
  [[nodiscard]] const std::vector<Span>& all() const noexcept { return spans_; }

 private:
  std::vector<Span> spans_;  // after finish(): sorted, disjoint
};

}  // namespace ptkit::code::source
