// The RTIT registers: values, and which writes fault.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "ptmodel/capabilities.h"

namespace ptkit::ptmodel {

enum class MsrResult : std::uint8_t {
  OK,
  FAULT,     // #GP(0)
  NOT_MINE,  // no register of the trace unit
};

// A field of a register, as rtit_regs.h gives it.
using base::bit;
[[nodiscard]] constexpr std::uint64_t field_mask(unsigned shift, unsigned width) noexcept {
  return ((std::uint64_t{1} << width) - 1) << shift;
}
[[nodiscard]] constexpr unsigned field_of(std::uint64_t value, unsigned shift, unsigned width) noexcept {
  return static_cast<unsigned>((value & field_mask(shift, width)) >> shift);
}

// OUTPUT_BASE and OUTPUT_MASK_PTRS: the output moves them.
struct OutputPointers {
  std::uint64_t base = 0;
  std::uint64_t mask_ptrs = PT_OUTPUT_MASK_LOWEST;
};

class Registers {
 public:
  explicit Registers(const Capabilities& capabilities);

  // Section "Trace Packet Generation Enable Controls and Configuration MSRs". Stores the value if it is
  // right.
  MsrResult write(std::uint32_t index, std::uint64_t value);
  // STATUS without what changes while tracing.
  [[nodiscard]] MsrResult read(std::uint32_t index, std::uint64_t& value) const;
  void reset(bool warm);

  [[nodiscard]] bool trace_enabled() const noexcept { return ctl_bit(PT_CTL_TRACE_EN); }
  [[nodiscard]] std::uint64_t ctl() const noexcept { return ctl_; }
  [[nodiscard]] bool ctl_bit(unsigned number) const noexcept { return (ctl_ >> number & 1) != 0; }
  [[nodiscard]] unsigned addr_cfg(unsigned range) const noexcept {
    return field_of(ctl_, PT_CTL_ADDR0_CFG_SHIFT + range * PT_CTL_ADDR_CFG_WIDTH, PT_CTL_ADDR_CFG_WIDTH);
  }
  [[nodiscard]] std::uint64_t addr(unsigned range, unsigned end) const noexcept { return addr_[range][end]; }
  [[nodiscard]] std::uint64_t cr3_match() const noexcept { return cr3_match_; }
  [[nodiscard]] bool status_bit(unsigned number) const noexcept { return (status_ >> number & 1) != 0; }
  [[nodiscard]] std::uint32_t packet_byte_count() const noexcept {
    return field_of(status_, PT_STATUS_PACKET_BYTE_COUNT_SHIFT, PT_STATUS_PACKET_BYTE_COUNT_WIDTH);
  }
  [[nodiscard]] const Capabilities& capabilities() const noexcept { return capabilities_; }

  // Changes by the unit itself.
  void set_status(unsigned number, bool on) noexcept {
    status_ = on ? status_ | bit(number) : status_ & ~bit(number);
  }
  void set_packet_byte_count(std::uint32_t count) noexcept;
  OutputPointers output;

 private:
  [[nodiscard]] bool valid_ctl(std::uint64_t value) const noexcept;
  [[nodiscard]] bool canonical(std::uint64_t address) const noexcept;
  [[nodiscard]] std::uint64_t allowed_ctl() const noexcept;
  [[nodiscard]] std::uint64_t allowed_status() const noexcept;
  [[nodiscard]] bool exists(std::uint32_t index) const noexcept;
  bool store(std::uint32_t index, std::uint64_t value) noexcept;

  Capabilities capabilities_;
  std::uint64_t allowed_ctl_;
  std::uint64_t allowed_status_;
  std::uint64_t ctl_ = 0;
  std::uint64_t status_ = 0;
  std::uint64_t cr3_match_ = 0;
  std::uint64_t addr_[PT_MSR_RTIT_ADDR_COUNT][2] = {};
};

}  // namespace ptkit::ptmodel
