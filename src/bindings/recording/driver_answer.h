// What ptkit's kernel driver says of itself, for Python.
#pragma once

#include "bindings/bindings.h"
#include "ptkit/ptkit_abi.h"

namespace ptkit::bindings {

// `error`: an errno value; 0: `query` is the driver's answer.
[[nodiscard]] py::dict driver_answer(int error, const ptkit_query& query);

}  // namespace ptkit::bindings
