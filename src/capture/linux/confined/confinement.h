// Confinement of a process that parses hostile input.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace ptkit::capture::confined {

struct ConfinementLimits {
  std::uint64_t memory_bytes = 0;  // in addition to its current address space
  std::uint64_t cpu_seconds = 0;
};

// Closes all descriptors from `first` on. For a single-threaded process.
void close_descriptors_from(int first);

// Confines a single-threaded process that has closed all unneeded descriptors. Drops its privileges; forbids
// it to open files, create processes, write files and exceed the limits; and installs a system call filter if
// the kernel supports it. The kernel kills the process when `parent` ends. Returns false if a step failed:
// the process must exit.
[[nodiscard]] bool confine(const ConfinementLimits& limits, pid_t parent);

}  // namespace ptkit::capture::confined
