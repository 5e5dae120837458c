// Long calls: they check for signals, and lock the object against other threads.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace ptkit::api::python {

inline constexpr std::chrono::milliseconds kSignalPeriod{50};

// Takes the GIL and runs signal handlers. Throws the exception of a handler.
inline void check_signals() {
  if (PyErr_Occurred() != nullptr || PyErr_CheckSignals() != 0) throw pybind11::error_already_set();
}

// Runs signal handlers within long calls, without exceptions: check_signals() throws that of a handler
// afterwards. Only the thread that made this does so, which must not hold locks that others take with the
// GIL.
class SignalWatch {
 public:
  // False: a handler raised an exception.
  [[nodiscard]] bool operator()() {
    if (std::this_thread::get_id() != thread_) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < kSignalPeriod) return true;
    const pybind11::gil_scoped_acquire gil;
    last_ = now;
    return PyErr_Occurred() == nullptr && PyErr_CheckSignals() == 0;
  }

 private:
  std::thread::id thread_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

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

}  // namespace ptkit::api::python
