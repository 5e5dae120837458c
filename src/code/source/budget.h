// Budget of steps and memory for the debug information of one file.
#pragma once

#include <cstdint>

namespace ptkit::code::source {

// Counts visited entries and bytes of names. References of a damaged or hostile file can make a reader visit
// the same entries any number of times.
class Budget {
 public:
  explicit Budget(std::uint64_t steps) noexcept : left_(steps) {}

  // Returns false if so many steps are not left: no more are taken then.
  [[nodiscard]] bool take(std::uint64_t steps = 1) noexcept {
    left_ = steps < left_ ? left_ - steps : 0;
    return left_ != 0;
  }
  void put_back(std::uint64_t steps) noexcept { left_ += steps; }
  [[nodiscard]] bool is_spent() const noexcept { return left_ == 0; }

 private:
  std::uint64_t left_;
};

}  // namespace ptkit::code::source
