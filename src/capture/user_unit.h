// A trace unit that sees the user code of one thread: the kernel is not traced.
#pragma once

#include <cstdint>
#include <utility>

#include "insn/insn.h"
#include "softpt/unit.h"

namespace ptkit::capture {

class UserUnit {
 public:
  UserUnit(const softpt::UnitConfig& config, softpt::PtUnit::Output sink) : unit_(config, std::move(sink)) {}

  // The core runs at the speed of the TSC (CBR is the maximum non-turbo ratio), so cycles are ticks.
  void set_time(std::uint64_t tsc) { unit_.set_time(tsc, cycles_at(tsc)); }
  // See PtUnit::set_time_loosely.
  bool set_time_loosely(std::uint64_t tsc) { return unit_.set_time_loosely(tsc, cycles_at(tsc)); }

  // The instruction at `ip` retired and control went to `to`. `mode` is its mode, `next_mode` that at `to`.
  // False: the instruction does not explain that; then packets are off, as by an interrupt.
  bool retire(const insn::Insn& insn, std::uint64_t ip, std::uint64_t to, insn::ExecMode mode,
              insn::ExecMode next_mode);
  // Packets go on at `ip`.
  void enter(std::uint64_t ip, insn::ExecMode mode);
  // The kernel took over at `ip` (signal, fault): the instruction there did not retire.
  void interrupted(std::uint64_t ip);
  // A branch that has retired led to `ip`, where code is not traced.
  void leave_to(std::uint64_t ip);
  // The code at `ip` is not what it was before: packets are off for a moment, and time is exact when they are
  // on again, at `tsc`.
  void code_changed(std::uint64_t ip, std::uint64_t tsc);

  [[nodiscard]] bool inside() const noexcept { return inside_; }
  [[nodiscard]] softpt::PtUnit& unit() noexcept { return unit_; }
  [[nodiscard]] const softpt::PtUnit& unit() const noexcept { return unit_; }

 private:
  [[nodiscard]] std::uint64_t cycles_at(std::uint64_t tsc) noexcept {
    if (first_tsc_ == 0) first_tsc_ = tsc;
    return tsc - first_tsc_;
  }
  void leave();
  bool unexpected(std::uint64_t from, std::uint64_t to);

  softpt::PtUnit unit_;
  std::uint64_t first_tsc_ = 0;
  bool inside_ = false;  // user code runs and is traced
};

// Far transfers that always go to the kernel.
[[nodiscard]] bool enters_kernel(insn::InsnKind kind) noexcept;

}  // namespace ptkit::capture
