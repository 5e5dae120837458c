// Filters of the traced execution: CPL, CR3 and address ranges, by the registers.
#pragma once

#include <array>
#include <cstdint>

#include "ptmodel/registers.h"

namespace ptkit::ptmodel {

class Filters {
 public:
  // When TraceEn is set: until it is cleared nothing of it can change.
  void configure(const Registers& registers) noexcept;

  // CPL and CR3 (ContextEn). PAE paging has a CR3 of 32-byte steps.
  [[nodiscard]] bool context(unsigned cpl, std::uint64_t cr3, bool pae) const noexcept {
    if (!(cpl == 0 ? os_ : user_)) return false;
    if (!by_cr3_) return true;
    const std::uint64_t ignored = pae ? 0x1f : 0xfff;
    return ((cr3 ^ cr3_match_) & ~ignored) == 0;
  }
  // Ranges of either kind are configured: taken branches have to be looked at.
  [[nodiscard]] bool ranges() const noexcept { return traced_.count + stops_.count != 0; }
  // FilterEn for code that a taken branch or an event reaches at `ip`.
  [[nodiscard]] bool traced(std::uint64_t ip) const noexcept { return traced_.count == 0 || traced_.has(ip); }
  [[nodiscard]] bool stops(std::uint64_t ip) const noexcept { return stops_.has(ip); }  // TraceStop

 private:
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;  // inclusive; below `first`: nothing is in it
  };
  struct Ranges {
    std::array<Range, PT_MSR_RTIT_ADDR_COUNT> all;
    unsigned count = 0;
    void add(const Range& range) noexcept { all[count++] = range; }
    [[nodiscard]] bool has(std::uint64_t ip) const noexcept {
      for (unsigned i = 0; i < count; ++i) {
        if (ip >= all[i].first && ip <= all[i].last) return true;
      }
      return false;
    }
  };

  Ranges traced_;
  Ranges stops_;
  std::uint64_t cr3_match_ = 0;
  bool os_ = false;
  bool user_ = false;
  bool by_cr3_ = false;
};

}  // namespace ptkit::ptmodel
