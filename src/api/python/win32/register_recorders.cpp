#include "api/python/bindings.h"

namespace ptkit::api::python {

void register_recorders(py::module_& module) { register_windows(module); }

}  // namespace ptkit::api::python
