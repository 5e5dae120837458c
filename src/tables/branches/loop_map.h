// Loops of functions by address: which instructions each has, and where their heads are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::tables::branches {

inline constexpr std::int32_t kNoLoop = -1;

struct Loop {
  std::uint64_t head = 0;
  trace::SpaceId space = 0;
  std::int32_t outer = kNoLoop;  // the innermost loop around it, which has a lower number
};

// Instructions [first, last] of a function that has loops.
struct LoopCode {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  trace::SpaceId space = 0;
  std::uint32_t function = 0;
  std::int32_t loop = kNoLoop;  // the innermost one
};

class LoopMap {
 public:
  struct Head {
    trace::SpaceId space = 0;
    std::uint64_t ip = 0;
    std::int32_t loop = 0;
  };

  // `code` is sorted by space and address, and does not overlap.
  LoopMap(std::vector<Loop> loops, std::vector<LoopCode> code);

  [[nodiscard]] std::size_t size() const noexcept { return loops_.size(); }
  [[nodiscard]] const Loop& loop(std::int32_t number) const noexcept {
    return loops_[static_cast<std::size_t>(number)];
  }
  // Null: code of no function with loops.
  [[nodiscard]] const LoopCode* at(trace::SpaceId space, std::uint64_t ip) const noexcept;
  // Of [first, end), ascending.
  [[nodiscard]] std::span<const Head> heads(trace::SpaceId space, std::uint64_t first,
                                            std::uint64_t end) const noexcept;
  [[nodiscard]] bool is_within(std::int32_t inner, std::int32_t loop) const noexcept {
    while (inner > loop) inner = this->loop(inner).outer;
    return inner == loop;
  }

 private:
  std::vector<Loop> loops_;
  std::vector<LoopCode> code_;
  std::vector<Head> heads_;  // by space and address
};

}  // namespace ptkit::tables::branches
