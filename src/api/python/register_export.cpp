// Exports recordings to other formats.
#include "api/python/bindings.h"
#include "api/python/text.h"
#include "formats/perf_export/writer.h"

namespace ptkit::api::python {
namespace {

py::dict write_perf_data(const BundleHandle& handle, const std::string& path, const std::string& code) {
  formats::PerfDataOptions options;
  if (code == "all") options.code = formats::PerfCode::ALL;
  if (code == "none") options.code = formats::PerfCode::NONE;
  options.go_on = [] {
    const py::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() == 0;
  };
  auto result = [&] {
    const py::gil_scoped_release release;
    return formats::write_perf_data(*handle.bundle, path, options);
  }();
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  const formats::PerfDataWritten written = value_or_raise(std::move(result));
  py::dict row;
  row["bytes"] = written.bytes;
  row["code_folder"] = py::bytes(written.code_folder);
  row["notes"] = python_warnings(written.notes);
  return row;
}

}  // namespace

void register_export(py::module_& module) {
  module.def("write_perf_data", &write_perf_data, py::arg("bundle"), py::arg("path"), py::kw_only(),
             py::arg("code") = "needed",
             "Writes perf.data; returns what was written and what perf.data cannot hold.");
}

}  // namespace ptkit::api::python
