// Trace bytes to memory: a single range that wraps, or regions that a table of physical addresses (ToPA)
// lists.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "ptmodel/platform.h"
#include "ptmodel/registers.h"

namespace ptkit::ptmodel {

class TraceOutput {
 public:
  // The result of writing.
  struct Outcome {
    bool error = false;      // STATUS.Error: wrong registers or a malformed entry
    bool stopped = false;    // STATUS.Stopped: a region with STOP is full
    bool interrupt = false;  // a region with INT is full
  };

  // `pointers` are those of the registers: they move with the output.
  TraceOutput(const Capabilities& capabilities, Platform& platform) noexcept
      : capabilities_(capabilities), platform_(platform) {}

  // TraceEn is set with this CTL. False: an operational error.
  [[nodiscard]] bool begin(std::uint64_t ctl, OutputPointers& pointers);
  // Bytes behind a stop or an error are lost.
  [[nodiscard]] Outcome write(base::Bytes bytes, OutputPointers& pointers);

 private:
  enum class Scheme : std::uint8_t { SINGLE_RANGE, TOPA, TRANSPORT };

  [[nodiscard]] bool valid_range(const OutputPointers& pointers) const noexcept;
  void write_range(base::Bytes bytes, OutputPointers& pointers);
  [[nodiscard]] Outcome write_regions(base::Bytes bytes, OutputPointers& pointers);
  [[nodiscard]] bool enter_region(OutputPointers& pointers);
  [[nodiscard]] bool follow_link(std::uint64_t entry, OutputPointers& pointers) const noexcept;
  [[nodiscard]] std::uint64_t address_in(std::uint64_t entry) const noexcept;
  [[nodiscard]] bool reserved_set(std::uint64_t entry) const noexcept;

  Capabilities capabilities_;
  Platform& platform_;
  Scheme scheme_ = Scheme::SINGLE_RANGE;
  std::uint64_t region_ = 0;  // the current ToPA region
  std::uint64_t region_size_ = 0;
  bool region_interrupts_ = false;
  bool region_stops_ = false;
};

}  // namespace ptkit::ptmodel
