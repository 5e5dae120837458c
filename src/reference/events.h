// libipt's events as ours.
#pragma once

#include <intel-pt.h>

#include "flow/rows.h"

namespace ptkit::reference {

// False if it is no event of ours (the library's own kinds that repeat packets).
[[nodiscard]] bool to_event(const pt_event& from, flow::Event& to) noexcept;

}  // namespace ptkit::reference
