// A branch as call stacks see it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "flow/rows/rows.h"
#include "tables/calls/stack/frame.h"

namespace ptkit::tables::calls {

// A branch, and counts of the rows before it.
struct Step {
  StreamPosition position;
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  flow::BranchKind kind = flow::BranchKind::COND;
  std::uint8_t flags = 0;  // flow::RowFlag
  bool leaves = false;     // to code that is not traced: packets are disabled there

  [[nodiscard]] bool from_known() const noexcept { return (flags & flow::FROM_KNOWN) != 0; }
  [[nodiscard]] bool to_known() const noexcept { return (flags & flow::TO_KNOWN) != 0; }
};

[[nodiscard]] inline StreamPosition after_branch(StreamPosition position) noexcept {
  ++position.instructions;
  ++position.stream_instructions;
  ++position.branches;
  return position;
}

// Tail calls: the function that jumps stays below the other one, or ends.
enum class Tails : std::uint8_t { NESTED, REPLACED };

[[nodiscard]] constexpr bool is_far_transfer(flow::BranchKind kind) noexcept {
  return kind == flow::BranchKind::FAR_JUMP || kind == flow::BranchKind::FAR_RETURN ||
         kind == flow::BranchKind::IRET;
}

inline constexpr std::size_t kNoFrame = SIZE_MAX;

}  // namespace ptkit::tables::calls
