// One thread's stream: what it retires, as Processor Trace of user code.
#pragma once

#include <cstdint>

#include "capture/truth_log.h"
#include "formats/ptk_writer.h"
#include "insn/insn.h"
#include "softpt/unit.h"

namespace ptkit::capture {

class ThreadEncoder {
 public:
  ThreadEncoder(const softpt::UnitConfig& config, formats::PtkWriter& writer, std::uint32_t stream,
                TruthLog truth);

  void set_time(std::uint64_t tsc);
  // The instruction at `ip` retired and control went to `to`. `mode` is its mode, `next_mode` that at `to`.
  void retire(const insn::Insn& insn, std::uint64_t ip, std::uint64_t to, insn::ExecMode mode,
              insn::ExecMode next_mode);
  // The kernel took over at `ip` (signal, fault): the instruction there did not retire.
  void interrupted(std::uint64_t ip);
  // The code at `ip` is not what it was before: packets are off for a moment, and time is exact when they are
  // on again, at `tsc`.
  void code_changed(std::uint64_t ip, std::uint64_t tsc);
  void finish();

  [[nodiscard]] std::uint32_t stream() const noexcept { return stream_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return unit_.bytes_written(); }
  [[nodiscard]] bool truth_failed() const noexcept { return truth_.failed(); }

 private:
  void enter(std::uint64_t ip, insn::ExecMode mode);
  void leave();
  void unexpected(std::uint64_t from, std::uint64_t to);

  std::uint32_t stream_;
  softpt::PtUnit unit_;
  TruthLog truth_;
  std::uint64_t first_tsc_ = 0;
  bool inside_ = false;  // user code runs and is traced
};

}  // namespace ptkit::capture
