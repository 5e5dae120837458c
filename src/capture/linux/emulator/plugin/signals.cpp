// An interposed sigprocmask() that detects delivered signals: the plugin is preloaded (LD_PRELOAD).
//
// When the emulator checks for pending signals, it blocks all signals (linux-user/signal.c,
// process_pending_signals()). After the check it sets the guest's mask. Both calls reach this sigprocmask().
// The guest's registers before and after show whether a handler was entered, and from where.
#include <dlfcn.h>
#include <signal.h>

#include "capture/linux/emulator/plugin/thread.h"

namespace {

using Function = int (*)(int, const sigset_t*, sigset_t*);

Function next_function() {
  static Function next;
  if (next == nullptr) next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "sigprocmask"));
  return next;
}

bool blocks_all(const sigset_t& set) {
  for (int signal = 1; signal < 32; ++signal) {
    if (sigismember(&set, signal) != 1) return false;
  }
  return true;
}

void check_registers(const sigset_t& set) {
  ptkit::capture::plugin::Thread& self = ptkit::capture::plugin::thread;
  if (self.env == nullptr || self.in_syscall) return;
  const uint64_t ip = self.env[ptkit::capture::plugin::kRip];
  const uint64_t sp = self.env[ptkit::capture::plugin::kRsp];
  if (blocks_all(set)) {
    if (self.interrupted) return;
    self.interrupted = true;
    self.interrupt_ip = ip;
    self.interrupt_sp = sp;
    ptkit::capture::plugin::mark(ptkit::capture::plugin::MarkKind::INTERRUPT, ip, sp);
  } else if (self.interrupted) {
    self.interrupted = false;
    const bool delivered = ip != self.interrupt_ip || sp != self.interrupt_sp;
    ptkit::capture::plugin::mark(ptkit::capture::plugin::MarkKind::RESUME, ip, sp,
                                 self.env[ptkit::capture::plugin::kRdi], delivered ? 1 : 0);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int sigprocmask(int how, const sigset_t* set,
                                                                  sigset_t* old) noexcept {
  if (set != nullptr && how == SIG_SETMASK) check_registers(*set);
  const Function next = next_function();
  return next == nullptr ? -1 : next(how, set, old);
}
