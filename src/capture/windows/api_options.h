// Options as the Python package gives them to every recorder. ptkit-capture has options.h.
#pragma once

#include "base/status.h"
#include "capture/common/record_options.h"
#include "capture/windows/session.h"

namespace ptkit::capture {

// A filter of all addresses of a file names a kernel driver. The failure names the option that the Windows
// driver does not have, and the remedy.
[[nodiscard]] base::Result<WindowsOptions> windows_options(RecordOptions given);

}  // namespace ptkit::capture
