// Text of recordings for Python.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

namespace ptkit::bindings {

// What comes from a recording may be no UTF-8.
[[nodiscard]] pybind11::object text_of(const std::string& text);

}  // namespace ptkit::bindings
