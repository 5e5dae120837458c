// Starting a program in the emulator.
#pragma once

#include <signal.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "capture/record_options.h"
#include "capture/tracee.h"

namespace ptkit::capture {

// What is run, and with what.
struct EmulatedProgram {
  std::string qemu;                    // path
  std::string plugin;                  // path
  std::string path;                    // of the ELF file
  std::vector<std::string> arguments;  // argv[0] first; those of a script's interpreter included
};

// Fails if something is missing, not permitted or cannot be emulated, and says what to do.
[[nodiscard]] base::Result<EmulatedProgram> find_emulated(const RecordOptions& options);
// QEMU's version, such as "7.2.22"; empty if it does not say. Takes some 20 ms.
[[nodiscard]] std::string qemu_version(const std::string& qemu);

struct Launched {
  pid_t pid = 0;
  Fd handle;  // pidfd
};
// `folder` has the socket, and may take other files.
[[nodiscard]] base::Result<Launched> launch_emulated(const EmulatedProgram& program,
                                                     const std::string& folder, const std::string& socket,
                                                     const sigset_t& mask, bool quiet);
// The process's handle; none (-1) if it is gone.
[[nodiscard]] Fd open_process(pid_t pid);

}  // namespace ptkit::capture
