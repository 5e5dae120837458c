// Says what works here, and prints stacks of last branches.
#pragma once

#include <optional>

#include "base/status.h"

namespace ptkit::client {

// 0: a recording can begin; 1: it cannot, and the text says why.
[[nodiscard]] int doctor();
[[nodiscard]] std::optional<base::Failure> print_last_branches();

}  // namespace ptkit::client
