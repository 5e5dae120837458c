#include "bindings/bindings.h"

namespace ptkit::bindings {

void register_recorders(py::module_& module) { register_windows(module); }

}  // namespace ptkit::bindings
