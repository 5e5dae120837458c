// Times and offsets of rows that came in bulk: their places are known as runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "columns/batch.h"
#include "flow/bulk.h"
#include "time/track.h"

namespace ptkit::columns {

// The columns that follow from a place; null where one is not wanted.
struct PlaceCells {
  std::uint64_t* tsc = nullptr;
  std::uint32_t* tsc_error = nullptr;
  std::uint8_t* tsc_source = nullptr;
  std::uint8_t* flags = nullptr;  // filled already, but for TIME_KNOWN
  std::uint64_t* offset = nullptr;

  [[nodiscard]] bool any_time() const noexcept {
    return tsc != nullptr || tsc_error != nullptr || tsc_source != nullptr || flags != nullptr;
  }
};

[[nodiscard]] constexpr time::Question question_of(const flow::Place& place) noexcept {
  return {place.since, place.offset | (place.before_first_bit ? time::Question::kBeforeFirstBit : 0)};
}

// Those of branches, blocks or instructions; none for other tables. Valid until the batch grows.
[[nodiscard]] PlaceCells place_cells(Batch& batch) noexcept;

// Cells may be written up to so many rows behind the last run's.
inline constexpr std::size_t kPlaceSlack = 16;
static_assert(kPlaceSlack <= flow::BulkRoom::kSlack);

// Fills the rows from `first_row` to the end of the last run. The same answers, and the same demands on
// order, as from track->at() for each run. Null track: no time is known.
void fill_places(std::span<const flow::PlaceRun> runs, std::size_t first_row, time::TimeTrack* track,
                 const PlaceCells& cells);

}  // namespace ptkit::columns
