// Converts libipt's events to ptkit's.
#pragma once

#include <intel-pt.h>

#include "flow/rows/rows.h"

namespace ptkit::flow::libipt {

// Returns false for libipt's events that repeat packets: ptkit has none for them.
[[nodiscard]] bool to_event(const pt_event& from, flow::Event& to) noexcept;

}  // namespace ptkit::flow::libipt
