// One thread's stream: what it retires, as Processor Trace of user code.
#pragma once

#include <cstdint>

#include "capture/truth_log.h"
#include "capture/user_unit.h"
#include "formats/ptk_writer.h"

namespace ptkit::capture {

class ThreadEncoder {
 public:
  ThreadEncoder(const softpt::UnitConfig& config, formats::PtkWriter& writer, std::uint32_t stream,
                TruthLog truth);

  void set_time(std::uint64_t tsc) { unit_.set_time(tsc); }
  // See UserUnit.
  void retire(const insn::Insn& insn, std::uint64_t ip, std::uint64_t to, insn::ExecMode mode,
              insn::ExecMode next_mode);
  void interrupted(std::uint64_t ip) { unit_.interrupted(ip); }
  void code_changed(std::uint64_t ip, std::uint64_t tsc) { unit_.code_changed(ip, tsc); }
  void finish();

  [[nodiscard]] std::uint32_t stream() const noexcept { return stream_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return unit_.unit().bytes_written(); }
  [[nodiscard]] bool truth_failed() const noexcept { return truth_.failed(); }

 private:
  std::uint32_t stream_;
  UserUnit unit_;
  TruthLog truth_;
};

}  // namespace ptkit::capture
