// Converts the arguments and the result of a recording.
#pragma once

#include "api/python/bindings.h"
#include "capture/common/record_options.h"

namespace ptkit::api::python {

// Keyword arguments have the names of the options' members. Raises TypeError for others.
[[nodiscard]] capture::RecordOptions options_of(const py::kwargs& given);

[[nodiscard]] py::dict to_dict(const capture::RecordResult& result);

}  // namespace ptkit::api::python
