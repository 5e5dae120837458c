// Reads what a process with hostile input writes. Internal to src/capture/linux/confined.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.h"
#include "base/posix/fd.h"

namespace ptkit::capture::confined {

struct PipeLimits {
  std::uint64_t bytes = 0;
  std::chrono::milliseconds time{0};
};

struct PipeEnd {
  std::string problem;  // why it was not read to its end; empty: it was
  bool late = false;    // the problem is a timeout
};

// Gives all bytes to `take` until all writers have closed the pipe. Stops when `take` returns false. Calls
// `meanwhile` every few milliseconds.
[[nodiscard]] PipeEnd read_pipe(const base::Fd& pipe, const PipeLimits& limits,
                                const std::function<void()>& meanwhile,
                                const std::function<bool(base::Bytes)>& take);

// "the process was killed by signal 11"
[[nodiscard]] std::string killed_by(int signal);

}  // namespace ptkit::capture::confined
