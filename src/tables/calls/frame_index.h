// Facts of frames that the table of calls lacks: with them frames are summed up without another decode.
#pragma once

#include <cstdint>
#include <vector>

#include "tables/calls/code/function_table.h"
#include "tables/calls/stack/frame.h"

namespace ptkit::tables::calls {

// Of all frames of some streams, with the numbers of frames as they are in the table.
class FrameIndex {
 public:
  // Instructions and branches of a frame that no other frame of its function has.
  struct Share {
    std::uint64_t id = 0;
    std::uint64_t instructions = 0;
    std::uint64_t branches = 0;
  };
  // The segment of a frame that had no frame below when it began.
  struct Bottom {
    std::uint64_t id = 0;
    std::uint32_t segment = 0;
  };

  // A frame that was entered by a far jump or return.
  struct Far {
    std::uint64_t id = 0;
  };

  // Notes facts of a frame that the table does not imply.
  void add(const Frame& frame);
  // Adds those of the next stream. Its `frames` have numbers after all others.
  void append(FrameIndex&& next, std::uint64_t frames);

  [[nodiscard]] Share share_of(const Frame& frame) const noexcept;
  [[nodiscard]] bool is_far(std::uint64_t id) const noexcept;
  // Null: there was a frame below.
  [[nodiscard]] const Bottom* bottom_of(std::uint64_t id) const noexcept;
  [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return shares_.capacity() * sizeof(Share) + bottoms_.capacity() * sizeof(Bottom) +
           far_.capacity() * sizeof(Far) + functions_.bytes();
  }
  [[nodiscard]] FunctionTable& functions() noexcept { return functions_; }
  [[nodiscard]] const FunctionTable& functions() const noexcept { return functions_; }

 private:
  std::vector<Share> shares_;    // those that differ; by id once they are appended
  std::vector<Bottom> bottoms_;  // by id once they are appended
  std::vector<Far> far_;         // the same
  std::uint32_t segments_ = 0;
  std::uint64_t frames_ = 0;
  FunctionTable functions_;
};

}  // namespace ptkit::tables::calls
