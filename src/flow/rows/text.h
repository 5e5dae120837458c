// Events as text, in the format of libipt's ptxed.
#pragma once

#include <string>

#include "flow/rows/rows.h"

namespace ptkit::flow {

// The event without brackets and without its IP: "paging, cr3: 000000000afafa0".
[[nodiscard]] std::string event_text(const Event& row);

}  // namespace ptkit::flow
