// Arguments of slices in files: their names, and which of them a slice has.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tables/calls/timeline_files/timeline_facts.h"

namespace ptkit::tables::calls {

enum class SliceArgument : std::uint8_t {
  INSTRUCTIONS,
  BRANCHES,
  EXACT,
  HOW,
  END_HOW,
  BEGIN_ERROR,
  END_ERROR,
  CALLS,
  COVERED,
  LOSS
};
inline constexpr std::array<std::string_view, 10> kSliceArguments = {
    "instructions",   "branches",     "exact", "how",     "end_how",
    "begin_error_ns", "end_error_ns", "calls", "covered", "loss"};

// Gives the arguments of a slice to the functions of `out`: integer(), boolean(), real() and word().
template <typename Out>
void put_arguments(const Slice& slice, const Positions& positions, Out&& out) {
  using enum SliceArgument;
  out.integer(INSTRUCTIONS, slice.instructions);
  out.integer(BRANCHES, slice.branches);
  out.boolean(EXACT, (slice.flags & FRAME_EXACT) != 0);
  if (slice.is_merged()) {
    out.integer(CALLS, slice.calls);
    out.real(COVERED, covered_share(slice));
  } else {
    if (slice.how != CallKind::CALL) out.word(HOW, slice.how);
    if (slice.end_how != CallEnd::RETURN) out.word(END_HOW, slice.end_how);
  }
  if (slice.begin_error != 0) out.integer(BEGIN_ERROR, positions.length_ns(slice.begin_error));
  if (slice.end_error != 0) out.integer(END_ERROR, positions.length_ns(slice.end_error));
  if (slice.has_loss) out.boolean(LOSS, true);
}

}  // namespace ptkit::tables::calls
