// Brent's cycle detection, for loops that consume no packets.
#pragma once

#include <cstdint>

namespace ptkit::flow {

// A walk that consumes no packets depends on the IP alone: an IP that repeats once repeats for ever. DeadEnds
// ends long walks without a cycle.
class LoopGuard {
 public:
  explicit LoopGuard(std::uint64_t ip) noexcept : tortoise_(ip) {}

  // True if `ip` is the saved IP (Brent's tortoise). A loop is found within three times the sum of its length
  // and its run-up.
  [[nodiscard]] bool loops(std::uint64_t ip) noexcept {
    if (ip == tortoise_) return true;
    if (++steps_ == limit_) {
      tortoise_ = ip;
      limit_ *= 2;
      steps_ = 0;
    }
    return false;
  }

 private:
  std::uint64_t tortoise_;
  std::uint64_t steps_ = 0;
  std::uint64_t limit_ = 2;
};

}  // namespace ptkit::flow
