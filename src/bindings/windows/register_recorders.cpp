#include "bindings/bindings.h"

namespace ptkit::bindings {

void register_recorders(py::module_& /*module*/) {}

}  // namespace ptkit::bindings
