// Encodes the instructions that one thread retires as Processor Trace of user code, into one stream.
#pragma once

#include <cstdint>

#include "capture/linux/encode/execution_log.h"
#include "capture/linux/encode/user_tracer.h"
#include "formats/ptk/writer.h"

namespace ptkit::capture {

class ThreadEncoder {
 public:
  ThreadEncoder(const trace_unit::generator::GeneratorConfig& config, formats::PtkWriter& writer,
                std::uint32_t stream, ExecutionLog log);

  void set_time(std::uint64_t tsc) { tracer_.set_time(tsc); }
  // See UserTracer.
  void retire(const code::insn::Insn& insn, std::uint64_t ip, std::uint64_t to, code::insn::ExecMode mode,
              code::insn::ExecMode next_mode);
  void interrupted(std::uint64_t ip) { tracer_.interrupted(ip); }
  void code_changed(std::uint64_t ip, std::uint64_t tsc) { tracer_.code_changed(ip, tsc); }
  void finish();

  [[nodiscard]] std::uint32_t stream() const noexcept { return stream_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return tracer_.generator().bytes_written(); }
  [[nodiscard]] bool log_failed() const noexcept { return log_.failed(); }

 private:
  std::uint32_t stream_;
  UserTracer tracer_;
  ExecutionLog log_;
};

}  // namespace ptkit::capture
