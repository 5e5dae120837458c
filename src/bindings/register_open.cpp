// Files and folders of every known format.
#include "bindings/bindings.h"
#include "formats/registry.h"

namespace ptkit::bindings {
namespace {

BundleHandle open_bundle(const std::string& path, const std::string& format) {
  formats::OpenOptions options;
  options.format = format;
  auto result = [&] {
    const py::gil_scoped_release release;
    return formats::open(path, options);
  }();
  BundleHandle handle;
  handle.bundle = std::make_shared<trace::TraceBundle>(value_or_raise(std::move(result)));
  return handle;
}

py::list format_rows() {
  py::list rows;
  for (const auto& format : formats::formats()) rows.append(py::make_tuple(format.name, format.description));
  return rows;
}

}  // namespace

void register_open(py::module_& module) {
  module.def("open_bundle", &open_bundle, py::arg("path"), py::arg("format") = "",
             "Reads a trace by content, or by the named format.");
  module.def("formats", &format_rows, "(name, description) of every reader.");
}

}  // namespace ptkit::bindings
