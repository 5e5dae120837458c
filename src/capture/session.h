// One run of the step recorder: the threads that are traced, and what each stop of one means.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "capture/code_recorder.h"
#include "capture/file_table.h"
#include "capture/step.h"
#include "capture/thread_encoder.h"
#include "capture/tracee.h"
#include "capture/tsc.h"
#include "formats/ptk_writer.h"

namespace ptkit::capture {

class StepSession {
 public:
  StepSession(StepRecorder& recorder, formats::PtkWriter writer);

  [[nodiscard]] base::Result<RecordResult> run(const void* signal_mask);

 private:
  // A process between two execs.
  struct Process {
    pid_t pid;
    CodeRecorder code;
  };

  struct Thread {
    pid_t tid = 0;
    pid_t pid = 0;
    std::shared_ptr<Process> process;
    std::unique_ptr<ThreadEncoder> encoder;  // made when the first instruction retires
    Registers at;   // where it is: only ip and mode are kept up to date by every step
    CodeInsn insn;  // what is being stepped, if insn_known
    bool insn_known = false;
    bool begun = false;      // its first stop was seen
    bool signalled = false;  // the step began with a signal
    std::optional<std::pair<std::uint64_t, CodeInsn>>
        restart;                     // a system call that the kernel may repeat: where, what
    std::uint64_t code_changes = 0;  // as of the last step
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
  void advance(Thread& thread, int signal);  // steps the instruction that the thread is at
  void retired(Thread& thread, const CodeInsn& insn, std::uint64_t ip);  // and control went to thread.at.ip
  void encode(Thread& thread, const CodeInsn& insn, std::uint64_t ip, std::uint64_t to);
  void after_syscall(Thread& thread, const CodeInsn& insn, std::uint64_t ip);
  static void hide_trap_flag(const Thread& thread);
  void note(trace::SidebandKind kind, const Thread& thread, std::int64_t value, std::string text);
  void end_stream(Thread& thread);
  [[nodiscard]] ThreadEncoder& encoder(Thread& thread);
  [[nodiscard]] std::shared_ptr<Process> make_process(pid_t pid);
  [[nodiscard]] std::uint64_t now();
  void set_time(Thread& thread);
  void flush_sometimes();
  void release(pid_t stopped, int status);  // lets everything that is traced run on alone
  void let_go(pid_t tid, int status);
  void end_root(int status);
  void wait_for_root();  // after release(): the exit status
  [[nodiscard]] base::Result<RecordResult> finish();

  StepRecorder& recorder_;
  const RecordOptions& options_;
  formats::PtkWriter writer_;
  formats::RecordingInfo info_;
  softpt::UnitConfig unit_config_;
  TscCalibration calibration_;
  FileTable files_;
  CodeReader reader_;
  std::map<pid_t, Thread> threads_;
  std::set<pid_t> unclaimed_;  // stopped before their parent's event told of them
  pid_t root_ = 0;
  bool root_ended_ = false;
  RecordResult result_;
  trace::SpaceId next_space_ = 1;
  std::uint64_t last_tsc_ = 0;
  std::uint64_t next_flush_tsc_ = 0;
  std::optional<insn::ExecMode> next_mode_;  // where the instruction that retires now changes it
  bool truth_failed_ = false;
};

}  // namespace ptkit::capture
