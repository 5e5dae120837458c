// The address ranges in which a recording has packets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::flow {

// Filter ranges of the configuration (IA32_RTIT_ADDRn_A/B with ADDRn_CFG).
class AddressFilter {
 public:
  explicit AddressFilter(const trace::Configuration& configuration);
  // Ranges of the address space count from here on. Of an unknown space (kAnySpace) those of all spaces do.
  void enter(trace::SpaceId space) noexcept;
  [[nodiscard]] bool known() const noexcept { return known_; }
  // True if no range was programmed, so that no near branch disables packets.
  [[nodiscard]] bool absent() const noexcept { return absent_; }
  // True if the address ranges allow packets at `ip`.
  [[nodiscard]] bool traced(std::uint64_t ip) const noexcept;

  // Where nothing is known of ranges: signs that some were programmed. Only the first packets that may be
  // signs are looked at, by the simple decoder.
  void watch() {
    if (known_ || absent_) return;
    checks_left_ = kMostChecks;
    signs_.reserve(kMostChecks);
  }
  [[nodiscard]] bool watches() const noexcept { return checks_left_ != 0; }
  void note_check(bool is_sign, std::uint64_t offset) const {
    if (checks_left_ == 0) return;
    --checks_left_;
    if (is_sign) signs_.push_back(offset);
  }
  // Offsets in the stream.
  [[nodiscard]] const std::vector<std::uint64_t>& signs() const noexcept { return signs_; }

 private:
  static constexpr unsigned kMostChecks = 1024;

  std::array<trace::AddressRange, 4> ranges_;
  std::vector<trace::SpaceRange> space_ranges_;
  std::size_t any_ = 0;    // number of ranges of all spaces, the first in space_ranges_
  std::size_t begin_ = 0;  // of the current space in space_ranges_
  std::size_t end_ = 0;
  bool known_ = false;       // a range is configured
  bool absent_ = false;      // none is, and that is known
  bool has_filter_ = false;  // a FILTER range is configured
  mutable unsigned checks_left_ = 0;
  mutable std::vector<std::uint64_t> signs_;
};

}  // namespace ptkit::flow
