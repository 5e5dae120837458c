// What frames are summed up by: their functions, the addresses of these, or their files.
#pragma once

#include <cstdint>

#include "calls/function_table.h"

namespace ptkit::calls {

enum class By : std::uint8_t { FUNCTION, ENTRY, MODULE };

class FrameGroups {
 public:
  // `functions` has the numbers of frames' functions, and must outlive this.
  FrameGroups(By by, const FunctionTable& functions) : by_(by), functions_(functions) {}

  // The group of frames of this function that were entered at this address.
  [[nodiscard]] std::uint32_t of(std::uint32_t function, std::uint64_t entry_ip, trace::SpaceId space) {
    if (by_ == By::FUNCTION || function < kFirstFunction) return function;
    Function group{.entry_ip = entry_ip, .space = space, .file = -1, .offset = 0};
    if (by_ == By::MODULE) {
      group.file = functions_.at(function).file;
      if (group.file < 0) group = {.entry_ip = 0, .space = trace::kAnySpace, .file = -1, .offset = 0};
    }
    return groups_.number(group);
  }
  // Of the groups that have numbers.
  [[nodiscard]] const FunctionTable& table() const noexcept {
    return by_ == By::FUNCTION ? functions_ : groups_;
  }
  [[nodiscard]] By by() const noexcept { return by_; }

 private:
  By by_;
  const FunctionTable& functions_;
  FunctionTable groups_;
};

}  // namespace ptkit::calls
