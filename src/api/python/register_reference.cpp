// The reference engine of this build.
#include "api/python/bindings.h"

#if PTKIT_HAVE_LIBIPT
#include "flow/libipt/decoder.h"
#endif

namespace ptkit::api::python {
namespace {

// (version of the loaded libipt, (major, minor) of its header at build time), or None.
py::object reference_version() {
#if PTKIT_HAVE_LIBIPT
  const unsigned header = flow::libipt::reference_header_version();
  return py::make_tuple(flow::libipt::reference_version(), py::make_tuple(header >> 8, header & 0xffU));
#else
  return py::none();
#endif
}

}  // namespace

void register_reference(py::module_& module) {
  module.def("reference_version", &reference_version,
             "(version, (major, minor) that this was built with) of libipt, None without it.");
}

}  // namespace ptkit::api::python
