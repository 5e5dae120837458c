// Converts the arguments and the result of a recording.
#pragma once

#include "api/python/bindings.h"
#include "capture/common/record_options.h"

namespace ptkit::api::python {

// Keyword arguments are the options of record_options.def, and `backend`, `argv`, `output`, `qemu`, `plugin`;
// for tests `truth` and `transfers`. Raises TypeError for others.
[[nodiscard]] capture::RecordOptions options_of(const py::kwargs& given);

// Timing packets and MTCFreq that a back end uses if they are not given.
[[nodiscard]] py::tuple default_timing(const std::string& backend);
// The rows of record_options.def as dictionaries.
[[nodiscard]] py::list record_options();

[[nodiscard]] py::dict to_dict(const capture::RecordResult& result);

}  // namespace ptkit::api::python
