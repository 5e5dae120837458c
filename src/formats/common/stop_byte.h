// libxdc and Honeybee expect the byte 55 after a trace. It begins no packet. Their recorders may save it.
#pragma once

#include "trace/buffer.h"

namespace ptkit::formats {

// Removes that byte if it stands at the end of the stream where a packet would begin.
[[nodiscard]] trace::TraceBuffer without_stop_byte(trace::TraceBuffer stream);

}  // namespace ptkit::formats
