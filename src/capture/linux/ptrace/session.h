// One run of the step recorder: the traced threads, and the actions at their ptrace stops.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "capture/linux/encode/execution_log.h"
#include "capture/linux/encode/user_tracer.h"
#include "capture/linux/files/file_table.h"
#include "capture/linux/process/process.h"
#include "capture/linux/process/tracee.h"
#include "capture/linux/process/tsc_clock.h"
#include "capture/linux/ptrace/code_pages.h"
#include "capture/linux/ptrace/recorder.h"
#include "capture/linux/sideband/jit_names.h"
#include "formats/ptk/writer.h"

namespace ptkit::capture {

// Encodes the instructions that one thread retires as Processor Trace of user code, into one stream.
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

class StepSession {
 public:
  StepSession(StepRecorder& recorder, formats::PtkWriter writer, FileParser& parser);

  [[nodiscard]] base::Result<RecordResult> run(const void* signal_mask);

 private:
  // A process between two exec() calls.
  struct Process {
    pid_t pid;
    CodePages code;
  };

  struct Thread {
    pid_t tid = 0;
    pid_t pid = 0;
    std::shared_ptr<Process> process;
    std::unique_ptr<ThreadEncoder> encoder;  // null until the first instruction retires
    Registers registers;                     // each step updates only ip and mode
    CodeInsn insn;                           // the instruction of the current step, if insn_known
    bool insn_known = false;
    bool begun = false;      // had its first stop
    bool signalled = false;  // the step began with a signal
    // IP and instruction of a system call that the kernel may restart.
    std::optional<std::pair<std::uint64_t, CodeInsn>> restart;
    std::uint64_t code_changes = 0;  // CodePages::changes() at the last step
  };

  [[nodiscard]] std::optional<base::Failure> begin(const void* signal_mask);
  void loop();
  void on_stop(pid_t tid, int status);
  void on_event(Thread& thread, int event, int signal);
  void on_new_task(Thread& parent, pid_t tid, int event);
  void on_exec(Thread& thread);
  void on_trap(Thread& thread);
  void on_signal(Thread& thread, int signal);
  void on_end(pid_t tid, int status);

  void first_stop(Thread& thread);
  void step_next(Thread& thread, int signal);  // single-steps the instruction at thread.registers.ip
  // The instruction at `ip` retired; the next instruction is at thread.registers.ip.
  void on_retired(Thread& thread, const CodeInsn& insn, std::uint64_t ip);
  void encode(Thread& thread, const CodeInsn& insn, std::uint64_t ip, std::uint64_t to);
  void after_syscall(Thread& thread, const CodeInsn& insn, std::uint64_t ip);
  static void hide_trap_flag(const Thread& thread);
  void note(trace::SidebandKind kind, const Thread& thread, std::int64_t value, std::string text);
  void end_stream(Thread& thread);
  [[nodiscard]] ThreadEncoder& encoder(Thread& thread);
  // `parent`: the space that was forked; kAnySpace: a new image.
  [[nodiscard]] std::shared_ptr<Process> make_process(pid_t pid, trace::SpaceId parent);
  void write_names();
  [[nodiscard]] std::uint64_t now();
  void set_time(Thread& thread);
  void flush_when_due();
  void detach_all(pid_t stopped, int status);  // all traced threads continue untraced
  void detach_thread(pid_t tid, int status);
  void end_child(int status);
  void wait_for_child();  // after detach_all(): waits for the exit status
  [[nodiscard]] base::Result<RecordResult> finish();

  StepRecorder& recorder_;
  const RecordOptions& options_;
  formats::PtkWriter writer_;
  formats::RecordingInfo info_;
  trace_unit::generator::GeneratorConfig generator_config_;
  TscCalibration calibration_;
  FileTable files_;
  CodeReader reader_;
  JitNames jit_names_{JitNames::Kinds::MAPS_AND_DUMPS};
  std::map<pid_t, Thread> threads_;
  std::set<pid_t> unannounced_;  // tasks that stopped before the fork, vfork or clone event of their parent
  pid_t child_ = 0;
  bool child_ended_ = false;
  RecordResult result_;
  trace::SpaceId next_space_ = 1;
  std::uint64_t last_tsc_ = 0;
  std::uint64_t next_flush_tsc_ = 0;
  std::optional<code::insn::ExecMode> next_mode_;  // execution mode after an instruction that changes it
  bool log_failed_ = false;
};

}  // namespace ptkit::capture
