#include "api/python/bindings.h"

namespace ptkit::api::python {

void register_recorders(py::module_& module) {
  register_capture(module);
  register_emulator(module);
  register_hardware(module);
}

}  // namespace ptkit::api::python
