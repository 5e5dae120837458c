// Blocks all signals of this thread while it exists. Threads and processes that start meanwhile inherit the
// mask, so the caller's threads handle all signals.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace ptkit::base {

class SignalsBlocked {
 public:
  explicit SignalsBlocked(sigset_t& before) {
    sigset_t all;
    static_cast<void>(::sigfillset(&all));
    static_cast<void>(::pthread_sigmask(SIG_SETMASK, &all, &before));
    before_ = before;
  }
  ~SignalsBlocked() { static_cast<void>(::pthread_sigmask(SIG_SETMASK, &before_, nullptr)); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace ptkit::base
