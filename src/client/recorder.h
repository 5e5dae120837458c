// Records: a program that is started, a process, or processors.
#pragma once

#include "base/status.h"
#include "capture/windows/options.h"

namespace ptkit::client {

// Returns the exit status of the program, or 0.
[[nodiscard]] base::Result<int> record(const capture::WindowsCommand& command);

}  // namespace ptkit::client
