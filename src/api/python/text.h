// Converts text of recordings to Python.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>
#include <vector>

#include "trace/warning.h"

namespace ptkit::api::python {

// All text of recordings comes to Python by this function. Bytes that are no UTF-8 become "\\xff" and the
// like.
[[nodiscard]] pybind11::str text_of(std::string_view text);
// A path as the system has it: such bytes become surrogates, as os.fsdecode() makes them.
[[nodiscard]] pybind11::str path_of(std::string_view path);
// Of ptkit.TraceWarning.
[[nodiscard]] pybind11::list python_warnings(const std::vector<trace::Warning>& warnings);

}  // namespace ptkit::api::python
