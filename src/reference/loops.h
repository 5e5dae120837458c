// Finds loops that consume no packets: Brent's method over the IPs between two instructions that do.
#pragma once

#include <cstdint>

namespace ptkit::reference {

class LoopDetector {
 public:
  void reset() noexcept {
    steps_ = 0;
    limit_ = kFirstLimit;
  }
  // True if this IP was seen since the last reset, within at most three times the length of the loop and its
  // run-up.
  [[nodiscard]] bool repeats(std::uint64_t ip) noexcept {
    if (steps_ != 0 && ip == mark_) return true;
    if (steps_ == 0 || steps_ == limit_) {
      mark_ = ip;
      limit_ = steps_ == 0 ? kFirstLimit : limit_ * 2;
    }
    ++steps_;
    return false;
  }

 private:
  static constexpr std::uint64_t kFirstLimit = 64;
  std::uint64_t mark_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t limit_ = kFirstLimit;
};

}  // namespace ptkit::reference
