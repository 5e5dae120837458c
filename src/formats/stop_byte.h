// libxdc and Honeybee want a byte 55 behind a trace, which is no packet: recorders for them may have saved
// it.
#pragma once

#include "trace/buffer.h"

namespace ptkit::formats {

// The stream without that byte, if it has one where a packet would begin.
[[nodiscard]] trace::TraceBuffer without_stop_byte(trace::TraceBuffer stream);

}  // namespace ptkit::formats
