// Architectural performance monitoring, version 2: Intel SDM vol. 3, "Architectural Performance Monitoring".
// A core cycle is an instruction here. Bochs' own number of instructions counts, in which an instruction that
// faults and each iteration of a string instruction are instructions, too.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "bochs_headers.h"

namespace ptkit::emulated {

class Counters {
 public:
  static constexpr unsigned kGeneral = 4;
  static constexpr unsigned kFixed = 3;
  static constexpr unsigned kWidth = 48;

  explicit Counters(BX_CPU_C& cpu) : cpu_(cpu) { reset(); }

  void reset();
  [[nodiscard]] bool on() const;
  // Before each instruction while a counter is on.
  void step() {
    if (cpu_.get_icount() >= deadline_ || user_mode() != user_) count();
  }

  // --- registers: 1 done, 0 #GP, -1 not ours
  int read_msr(unsigned index, std::uint64_t& value);
  int write_msr(unsigned index, std::uint64_t value);
  [[nodiscard]] std::optional<std::uint64_t> read_counter(std::uint32_t selector);  // RDPMC

  // --- the interrupt, which all causes share
  // Sets a bit of IA32_PERF_GLOBAL_STATUS.
  void interrupt(std::uint64_t cause);
  // The entry of the local APIC is not masked any more.
  void unmasked();

 private:
  static constexpr unsigned kAll = kGeneral + kFixed;

  [[nodiscard]] bool user_mode() const { return cpu_.sregs[BX_SEG_REG_CS].selector.rpl != 0; }
  [[nodiscard]] bool counts(unsigned counter, bool user) const;
  [[nodiscard]] bool interrupts(unsigned counter) const;
  [[nodiscard]] std::uint64_t* value(unsigned index);
  void count();
  void plan();

  BX_CPU_C& cpu_;
  std::array<std::uint64_t, kAll> values_{};  // general, then fixed
  std::array<std::uint64_t, kGeneral> selects_{};
  std::uint64_t fixed_control_ = 0;
  std::uint64_t global_control_ = 0;
  std::uint64_t global_status_ = 0;
  std::uint64_t counted_ = 0;   // up to this instruction
  std::uint64_t deadline_ = 0;  // the instruction before which a counter overflows
  bool user_ = false;           // since counted_
};

}  // namespace ptkit::emulated
