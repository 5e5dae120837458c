// Long calls: they check for signals, and lock the object against other threads.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

namespace ptkit::bindings {

inline constexpr std::chrono::milliseconds kSignalPeriod{50};

// Takes the GIL and runs signal handlers. Throws the exception of a handler.
inline void check_signals() {
  if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

class ExclusiveUse {
 public:
  // Throws std::runtime_error with this text if another thread uses the object.
  ExclusiveUse(std::atomic<bool>& busy, const char* problem) : busy_(busy) {
    if (busy.exchange(true)) throw std::runtime_error(problem);
  }
  ~ExclusiveUse() { busy_ = false; }
  ExclusiveUse(const ExclusiveUse&) = delete;
  ExclusiveUse& operator=(const ExclusiveUse&) = delete;

 private:
  std::atomic<bool>& busy_;
};

}  // namespace ptkit::bindings
