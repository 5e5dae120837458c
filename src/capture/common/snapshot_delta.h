// Computes the new bytes of a snapshot of a ring that the trace unit overwrites.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace ptkit::capture {

// A ring has a write position, but no count of laps. Each snapshot is compared with the snapshot before:
//
//              previous position      position
//                     |                  |
//   | new if lapped   |   new bytes      |  previous bytes, if not lapped  |
//   0                                                                    bytes
//
// If all bytes from `position` to the previous position are unchanged, the ring was not lapped.
class SnapshotDelta {
 public:
  explicit SnapshotDelta(std::uint64_t bytes) : bytes_(bytes) {}

  struct NewBytes {
    base::Bytes bytes;  // a suffix of `newest`
    bool lost = false;  // older bytes were overwritten before a snapshot read them
  };
  // `newest`: the ring's contents, oldest byte first; the last byte lies right before `position`. `lapped`:
  // the ring was written to its end at least once since tracing began.
  [[nodiscard]] NewBytes take(const std::vector<std::uint8_t>& newest, bool lapped, std::uint64_t position);

 private:
  [[nodiscard]] bool was_lapped(const std::vector<std::uint8_t>& newest, std::uint64_t position) const;

  std::uint64_t bytes_;
  std::vector<std::uint8_t> previous_;  // the last snapshot, by position in the ring
  std::uint64_t previous_position_ = 0;
  bool has_previous_ = false;
};

}  // namespace ptkit::capture
