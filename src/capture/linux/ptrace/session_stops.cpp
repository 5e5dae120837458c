// The actions at each stop of a traced thread (ptrace(2), "Stopped states").
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>

#include "capture/linux/ptrace/session.h"

namespace ptkit::capture {

namespace {

using code::insn::InsnClass;
using code::insn::InsnKind;

// si_code of a SIGTRAP stop.
constexpr int kTrapUnknown = SI_KERNEL;   // INT3
constexpr int kHandlerEntered = SIGTRAP;  // the step set up a signal frame and executed no instruction
constexpr int kSyscallLeft = TRAP_BRKPT;  // the step ends at the exit of a system call
constexpr int kStepped = TRAP_TRACE;

// Results of system calls that the kernel restarts, or ends with EINTR, after signal handling
// (include/linux/errno.h).
constexpr std::array<std::int64_t, 4> kRestartResults{-512, -513, -514, -516};

bool may_restart(const Registers& registers) {
  const auto result = registers.mode == code::insn::ExecMode::BITS64
                          ? static_cast<std::int64_t>(registers.result)
                          : std::int64_t{static_cast<std::int32_t>(registers.result)};
  return registers.syscall >= 0 &&
         std::find(kRestartResults.begin(), kRestartResults.end(), result) != kRestartResults.end();
}

// System calls that may change the mappings of code: mmap mprotect munmap mremap shmat shmdt remap_file_pages
// pkey_mprotect.
bool changes_mappings(const Registers& registers) {
  constexpr std::array kNumbers64{9, 10, 11, 25, 30, 67, 216, 329};
  constexpr std::array kNumbers32{90, 91, 117, 125, 163, 192, 257, 380, 397, 398};
  const auto is = [&](int number) { return registers.syscall == number; };
  return registers.mode == code::insn::ExecMode::BITS64
             ? std::any_of(kNumbers64.begin(), kNumbers64.end(), is)
             : std::any_of(kNumbers32.begin(), kNumbers32.end(), is);
}

// write, pwrite64, writev.
bool writes(const Registers& registers) {
  constexpr std::array kNumbers64{1, 18, 20};
  constexpr std::array kNumbers32{4, 181, 146};
  const auto is = [&](int number) { return registers.syscall == number; };
  return registers.mode == code::insn::ExecMode::BITS64
             ? std::any_of(kNumbers64.begin(), kNumbers64.end(), is)
             : std::any_of(kNumbers32.begin(), kNumbers32.end(), is);
}

bool is_far(const code::insn::Insn& insn) {
  return insn.cls == InsnClass::FAR_CALL || insn.cls == InsnClass::FAR_RETURN ||
         insn.cls == InsnClass::FAR_JUMP;
}

bool is_syscall(const code::insn::Insn& insn) {
  return insn.kind == InsnKind::SYSCALL || insn.kind == InsnKind::SYSENTER || insn.kind == InsnKind::INT;
}

constexpr std::uint64_t kTrapFlagByte = 1;  // TF is bit 8 of the flags: bit 0 of their second byte

}  // namespace

void StepSession::on_stop(pid_t tid, int status) {
  const auto found = threads_.find(tid);
  if (found == threads_.end()) {
    if (WIFSTOPPED(status)) unannounced_.insert(tid);
    return;
  }
  if (WIFEXITED(status) || WIFSIGNALED(status)) return on_end(tid, status);
  Thread& thread = found->second;
  const int signal = WSTOPSIG(status);
  const int event = status >> 16;
  if (event != 0) return on_event(thread, event, signal);
  if (signal == SIGTRAP) return on_trap(thread);
  on_signal(thread, signal);
}

void StepSession::on_event(Thread& thread, int event, int signal) {
  switch (event) {
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
      // The stop is inside the system call: continue its step.
      on_new_task(thread, static_cast<pid_t>(event_message(thread.tid)), event);
      return step(thread.tid, 0);
    case PTRACE_EVENT_EXEC:
      return on_exec(thread);
    case PTRACE_EVENT_STOP:
      if (!thread.begun) return first_stop(thread);
      if (signal != SIGTRAP) return listen(thread.tid);
      return step(thread.tid, 0);
    default:
      return step(thread.tid, 0);
  }
}

void StepSession::on_new_task(Thread& parent, pid_t tid, int event) {
  Thread& thread = threads_[tid];
  thread.tid = tid;
  // clone() makes threads and processes; /proc/PID/task has only threads.
  const bool same_process = event == PTRACE_EVENT_CLONE && is_thread_of(parent.pid, tid);
  thread.pid = same_process ? parent.pid : tid;
  thread.process = same_process ? parent.process : make_process(tid, parent.process->code.space());
  trace::Sideband record;
  record.kind = same_process ? trace::SidebandKind::THREAD : trace::SidebandKind::PROCESS;
  record.tsc = now();
  record.pid = thread.pid;
  record.tid = tid;
  record.parent = parent.pid;
  writer_.sideband(record);
  if (unannounced_.erase(tid) != 0) first_stop(thread);
}

void StepSession::first_stop(Thread& thread) {
  thread.begun = true;
  if (!read_registers(thread.tid, thread.registers)) return;
  step_next(thread, 0);
}

// exec() replaced the program's image: the process gets a new address space and a new stream. Its other
// threads have ended. The thread that called exec() now has the process's id.
void StepSession::on_exec(Thread& stopped) {
  const pid_t pid = stopped.tid;
  const auto caller_tid = static_cast<pid_t>(event_message(pid));
  if (caller_tid != pid) {
    const auto caller = threads_.find(caller_tid);
    if (caller != threads_.end()) {
      end_stream(stopped);
      stopped = std::move(caller->second);
      stopped.tid = pid;
      threads_.erase(caller);
    }
  }
  Thread& thread = threads_[pid];
  for (auto at = threads_.begin(); at != threads_.end();) {
    if (at->second.pid == pid && at->first != pid) {
      end_stream(at->second);
      at = threads_.erase(at);
    } else {
      ++at;
    }
  }
  set_time(thread);
  // The SYSCALL of execve() retired.
  if (thread.insn_known && thread.encoder) on_retired(thread, thread.insn, thread.registers.ip);
  end_stream(thread);
  thread.begun = true;
  if (thread.process) jit_names_.end(thread.process->code.space(), last_tsc_);
  thread.process = make_process(pid, trace::kAnySpace);
  thread.code_changes = 0;
  thread.restart.reset();
  note(trace::SidebandKind::EXEC, thread, 0, program_path(pid));
  if (!read_registers(pid, thread.registers)) return;
  step_next(thread, 0);
}

void StepSession::on_trap(Thread& thread) {
  std::uint64_t ip = 0;
  if (!read_ip(thread.tid, ip)) return;
  const bool plain = thread.insn_known && !is_far(thread.insn.insn) && !thread.signalled && !thread.restart;
  if (plain && ip != thread.registers.ip) {
    const std::uint64_t from = std::exchange(thread.registers.ip, ip);
    set_time(thread);
    on_retired(thread, thread.insn, from);
    return step_next(thread, 0);
  }
  const int code = signal_code(thread.tid);
  const bool leaves_syscall = code == kSyscallLeft;
  if (code != kStepped && !leaves_syscall && code != kHandlerEntered) {
    if (code == kTrapUnknown && thread.insn_known && thread.insn.insn.kind == InsnKind::INT3) {
      set_time(thread);
      on_retired(thread, thread.insn, std::exchange(thread.registers.ip, ip));
      thread.insn_known = false;
    }
    return on_signal(thread, SIGTRAP);  // a SIGTRAP of the program
  }
  set_time(thread);
  Registers before = thread.registers;
  if (!read_registers(thread.tid, thread.registers)) return;
  const bool repeats = thread.insn_known && thread.insn.insn.rep && ip == before.ip;
  if (code == kHandlerEntered) {
    thread.restart.reset();  // the handler's frame decides about a restart
    if (thread.encoder) thread.encoder->interrupted(before.ip);
  } else if (leaves_syscall && thread.restart) {
    const auto [from, insn] = *thread.restart;
    on_retired(thread, insn, from);
    return step_next(thread, 0);
  } else if (leaves_syscall ? thread.insn_known && is_syscall(thread.insn.insn) : !repeats) {
    thread.restart.reset();
    std::swap(before.mode, thread.registers.mode);  // on_retired() needs the instruction's own mode
    const code::insn::ExecMode next_mode = before.mode;
    if (thread.insn_known) {
      next_mode_ = next_mode;
      on_retired(thread, thread.insn, before.ip);
    } else if (thread.encoder && ip != before.ip) {
      thread.encoder->interrupted(before.ip);  // the kernel emulated unreadable code (vsyscall page)
    }
    thread.registers.mode = next_mode;
  }
  step_next(thread, 0);
}

void StepSession::on_signal(Thread& thread, int signal) {
  Registers before = thread.registers;
  if (!read_registers(thread.tid, thread.registers)) return;
  set_time(thread);
  note(trace::SidebandKind::SIGNAL, thread, signal, {});
  // A trap (INTO, BOUND) stops after its instruction, a fault at its instruction.
  if (thread.insn_known && thread.registers.ip != before.ip && !thread.restart)
    on_retired(thread, thread.insn, before.ip);
  step_next(thread, signal);
}

void StepSession::on_retired(Thread& thread, const CodeInsn& insn, std::uint64_t ip) {
  const code::insn::ExecMode mode = thread.registers.mode;
  const std::uint64_t next = code::insn::next_ip(insn.insn, mode, ip);
  if (insn.insn.cls == InsnClass::OTHER && thread.registers.ip != next) {
    // One step executed two instructions: the first instruction delayed the trap.
    const CodeInsn* second = thread.process->code.fetch(next, mode, last_tsc_);
    const bool leads_on = second != nullptr && second->insn.cls == InsnClass::OTHER &&
                          code::insn::next_ip(second->insn, mode, next) == thread.registers.ip;
    if (second != nullptr && (insn.loads_ss || leads_on)) {
      const CodeInsn copy = *second;
      encode(thread, insn, ip, next);
      return encode(thread, copy, next, thread.registers.ip);
    }
  }
  encode(thread, insn, ip, thread.registers.ip);
}

void StepSession::encode(Thread& thread, const CodeInsn& insn, std::uint64_t ip, std::uint64_t to) {
  if (insn.pushes_flags) hide_trap_flag(thread);
  encoder(thread).retire(insn.insn, ip, to, thread.registers.mode,
                         next_mode_.value_or(thread.registers.mode));
  next_mode_.reset();
  recorder_.instructions_.store(++result_.instructions, std::memory_order_relaxed);
  if (is_syscall(insn.insn)) after_syscall(thread, insn, ip);
}

// Clears the trap flag in the flags that PUSHF stored: single-stepping set it, and the program must not see
// it.
void StepSession::hide_trap_flag(const Thread& thread) {
  Registers registers;
  std::array<std::uint8_t, 1> byte{};
  const Memory& memory = thread.process->code.memory();
  if (!read_registers(thread.tid, registers) || memory.read(registers.sp + 1, byte) != 1) return;
  static_cast<void>(memory.write_byte(registers.sp + 1, byte[0] & static_cast<std::uint8_t>(~kTrapFlagByte)));
}

void StepSession::after_syscall(Thread& thread, const CodeInsn& insn, std::uint64_t ip) {
  thread.restart.reset();
  Registers registers;
  if (!read_registers(thread.tid, registers)) return;  // the system call did not return
  if (may_restart(registers)) thread.restart.emplace(ip, insn);
  if (changes_mappings(registers)) thread.process->code.mappings_changed();
  if (writes(registers)) jit_names_.look(last_tsc_, true);
}

void StepSession::step_next(Thread& thread, int signal) {
  CodePages& code = thread.process->code;
  const CodeInsn* next = code.fetch(thread.registers.ip, thread.registers.mode, last_tsc_);
  thread.insn_known = next != nullptr;
  if (next != nullptr) thread.insn = *next;
  if (thread.code_changes != code.changes()) {
    thread.code_changes = code.changes();
    // New code is valid from the next tick on.
    last_tsc_ += 2;
    if (thread.encoder) thread.encoder->code_changed(thread.registers.ip, last_tsc_);
  }
  thread.signalled = signal != 0;
  step(thread.tid, signal);
}

void StepSession::on_end(pid_t tid, int status) {
  Thread& thread = threads_[tid];
  const int result = exit_status_of(status);
  set_time(thread);
  if (thread.encoder) {
    // A system call that did not return has retired. Any other instruction has not.
    if (thread.insn_known && is_syscall(thread.insn.insn) && !thread.signalled)
      on_retired(thread, thread.insn, thread.registers.ip);
    else
      thread.encoder->interrupted(thread.registers.ip);
  }
  note(trace::SidebandKind::EXIT, thread, result, {});
  end_stream(thread);
  threads_.erase(tid);
  if (tid != child_) return;
  child_ended_ = true;
  result_.exit_status = result;
}

}  // namespace ptkit::capture
