// Prints the stacks of last branches (LBR), as they are.
#pragma once

#include <optional>

#include "base/status.h"

namespace ptkit::capture::win32 {

[[nodiscard]] std::optional<base::Failure> print_last_branches();

}  // namespace ptkit::capture::win32
