// The answer of ptkit's kernel driver to a query, for Python.
#pragma once

#include "api/python/bindings.h"
#include "ptkit/ptkit_abi.h"

namespace ptkit::api::python {

// `error`: an errno value; 0: `query` is the driver's answer.
[[nodiscard]] py::dict driver_answer(int error, const ptkit_query& query);

}  // namespace ptkit::api::python
