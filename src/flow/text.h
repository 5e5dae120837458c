// Events as text, in the manner of libipt's ptxed.
#pragma once

#include <string>

#include "flow/rows.h"

namespace ptkit::flow {

// What happened, without brackets and without the event's IP: "paging, cr3: 000000000afafa0".
[[nodiscard]] std::string event_text(const Event& row);

}  // namespace ptkit::flow
