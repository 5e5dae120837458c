#include "bindings/bindings.h"

namespace ptkit::bindings {

void register_recorders(py::module_& module) {
  register_capture(module);
  register_emulator(module);
  register_hardware(module);
}

}  // namespace ptkit::bindings
