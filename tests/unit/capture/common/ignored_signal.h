// A signal that this process ignores, as one that a shell runs in the background ignores SIGINT.
#pragma once

#include <signal.h>

namespace ptkit::capture {

class IgnoredSignal {
 public:
  explicit IgnoredSignal(int number) : number_(number), before_(::signal(number, SIG_IGN)) {}
  ~IgnoredSignal() { static_cast<void>(::signal(number_, before_)); }
  IgnoredSignal(const IgnoredSignal&) = delete;
  IgnoredSignal& operator=(const IgnoredSignal&) = delete;

 private:
  int number_;
  void (*before_)(int);
};

}  // namespace ptkit::capture
