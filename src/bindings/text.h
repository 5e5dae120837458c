// Converts text of recordings to Python.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "trace/warning.h"

namespace ptkit::bindings {

// Text of a recording may not be UTF-8.
[[nodiscard]] pybind11::object text_of(const std::string& text);
// Of ptkit.TraceWarning.
[[nodiscard]] pybind11::list python_warnings(const std::vector<trace::Warning>& warnings);

}  // namespace ptkit::bindings
