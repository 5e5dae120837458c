#include "capture/common/snapshot_delta.h"

#include <algorithm>

namespace ptkit::capture {

// Whether the whole ring was written since the last snapshot. If not, the bytes from `position` to the
// previous position are unchanged.
bool SnapshotDelta::was_lapped(const std::vector<std::uint8_t>& newest, std::uint64_t position) const {
  if (!has_previous_) return true;
  // Equal positions: the trace unit wrote nothing, or whole laps.
  const std::uint64_t between = (previous_position_ + bytes_ - position) % bytes_;
  const std::uint64_t old = between != 0 ? between : bytes_;
  for (std::uint64_t i = 0; i < old; ++i) {
    if (newest[i] != previous_[(position + i) % bytes_]) return true;
  }
  return false;
}

SnapshotDelta::NewBytes SnapshotDelta::take(const std::vector<std::uint8_t>& newest, bool lapped,
                                            std::uint64_t position) {
  position %= bytes_;
  NewBytes out{newest};
  if (lapped && was_lapped(newest, position)) {
    out.lost = true;
  } else if (has_previous_) {
    const std::uint64_t count = (position + bytes_ - previous_position_) % bytes_;
    out.bytes = out.bytes.last(std::min<std::size_t>(count, out.bytes.size()));
  }
  previous_.assign(bytes_, 0);
  for (std::size_t i = 0; i < newest.size(); ++i)
    previous_[(position + bytes_ - newest.size() + i) % bytes_] = newest[i];
  previous_position_ = position;
  has_previous_ = true;
  return out;
}

}  // namespace ptkit::capture
