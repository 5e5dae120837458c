// Starting a program in the emulator.
#pragma once

#include <signal.h>

#include <string>
#include <vector>

#include "base/status.h"
#include "capture/common/record_options.h"
#include "capture/linux/process/process.h"

namespace ptkit::capture {

// A program, and the emulator and plugin that run it.
struct EmulatedProgram {
  std::string qemu;                    // path
  std::string plugin;                  // path
  std::string path;                    // of the ELF file
  std::vector<std::string> arguments;  // argv[0] first; those of a script's interpreter included
};

// Finds the program, the emulator and the plugin. Fails if one is missing, not permitted or cannot be
// emulated; the failure has the remedy.
[[nodiscard]] base::Result<EmulatedProgram> find_emulated(const RecordOptions& options);
// QEMU's version, such as "7.2.22"; empty if unknown. Takes some 20 ms.
[[nodiscard]] std::string qemu_version(const std::string& qemu);

struct Launched {
  pid_t pid = 0;
  Fd handle;  // pidfd
};
// Starts the program. `folder` holds the socket; a link to the plugin may be added.
[[nodiscard]] base::Result<Launched> launch_emulated(const EmulatedProgram& program,
                                                     const std::string& folder, const std::string& socket,
                                                     const sigset_t& mask, bool quiet);

}  // namespace ptkit::capture
