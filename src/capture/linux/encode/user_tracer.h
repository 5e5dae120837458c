// Traces the user code of one thread as a trace unit with OS = 0 does: the kernel is not traced.
#pragma once

#include <cstdint>
#include <utility>

#include "code/insn/insn.h"
#include "trace_unit/generator/packet_generator.h"

namespace ptkit::capture {

class UserTracer {
 public:
  UserTracer(const trace_unit::generator::GeneratorConfig& config,
             trace_unit::generator::PacketGenerator::Output sink)
      : generator_(config, std::move(sink)) {}

  // The core runs at the TSC's frequency (CBR is the maximum non-turbo ratio), so core cycles are TSC ticks.
  void set_time(std::uint64_t tsc) { generator_.set_time(tsc, cycles_at(tsc)); }
  // See PacketGenerator::set_time_loosely.
  bool set_time_loosely(std::uint64_t tsc) { return generator_.set_time_loosely(tsc, cycles_at(tsc)); }

  // The instruction at `ip` retired and control went to `to`. `mode` is its mode, `next_mode` that at `to`.
  // Returns false if the instruction cannot lead to `to`; then packets are off, as by an interrupt.
  bool retire(const code::insn::Insn& insn, std::uint64_t ip, std::uint64_t to, code::insn::ExecMode mode,
              code::insn::ExecMode next_mode);
  // Enables packets at `ip`.
  void enter(std::uint64_t ip, code::insn::ExecMode mode);
  // The kernel took over at `ip` (signal, fault): the instruction there did not retire.
  void interrupted(std::uint64_t ip);
  // A branch that has retired led to `ip`, where code is not traced.
  void leave_to(std::uint64_t ip);
  // The code at `ip` has changed: packets are disabled, then enabled again with the exact time `tsc`.
  void code_changed(std::uint64_t ip, std::uint64_t tsc);

  [[nodiscard]] bool inside() const noexcept { return inside_; }
  [[nodiscard]] trace_unit::generator::PacketGenerator& generator() noexcept { return generator_; }
  [[nodiscard]] const trace_unit::generator::PacketGenerator& generator() const noexcept {
    return generator_;
  }

 private:
  [[nodiscard]] std::uint64_t cycles_at(std::uint64_t tsc) noexcept {
    if (first_tsc_ == 0) first_tsc_ = tsc;
    return tsc - first_tsc_;
  }
  void leave();
  bool unexpected(std::uint64_t from, std::uint64_t to);

  trace_unit::generator::PacketGenerator generator_;
  std::uint64_t first_tsc_ = 0;
  bool inside_ = false;  // user code runs and is traced
};

// Far transfers that always go to the kernel.
[[nodiscard]] bool enters_kernel(code::insn::InsnKind kind) noexcept;

}  // namespace ptkit::capture
