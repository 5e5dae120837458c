// Name, processors and clocks of this Windows.
#pragma once

#include "capture/windows/session.h"
#include "formats/ptk/writer.h"

namespace ptkit::capture::win32 {

[[nodiscard]] capture::WindowsMachine this_machine();
[[nodiscard]] formats::ClockSample clocks_now();

// Enables privileges that an administrator's token has: to trace (SeSystemProfilePrivilege), and to read
// other processes (SeDebugPrivilege). The driver refuses where the first one is missing.
void enable_privileges();

}  // namespace ptkit::capture::win32
