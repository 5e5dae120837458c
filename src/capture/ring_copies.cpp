#include "capture/ring_copies.h"

#include <algorithm>

namespace ptkit::capture {

// Whether all of the ring was written since the last copy: what that one has from here on to its own end
// would still be there.
bool RingCopies::was_lapped(const std::vector<std::uint8_t>& newest, std::uint64_t position) const {
  if (!seen_any_) return true;
  // At the same place as then: nothing was written, or all of it.
  const std::uint64_t between = (seen_to_ + bytes_ - position) % bytes_;
  const std::uint64_t old = between != 0 ? between : bytes_;
  for (std::uint64_t i = 0; i < old; ++i) {
    if (newest[i] != seen_[(position + i) % bytes_]) return true;
  }
  return false;
}

RingCopies::Fresh RingCopies::take(const std::vector<std::uint8_t>& newest, bool lapped,
                                   std::uint64_t position) {
  position %= bytes_;
  Fresh out{newest};
  if (lapped && was_lapped(newest, position)) {
    out.lost = true;
  } else if (seen_any_) {
    const std::uint64_t count = (position + bytes_ - seen_to_) % bytes_;
    out.bytes = out.bytes.last(std::min<std::size_t>(count, out.bytes.size()));
  }
  seen_.assign(bytes_, 0);
  for (std::size_t i = 0; i < newest.size(); ++i)
    seen_[(position + bytes_ - newest.size() + i) % bytes_] = newest[i];
  seen_to_ = position;
  seen_any_ = true;
  return out;
}

}  // namespace ptkit::capture
