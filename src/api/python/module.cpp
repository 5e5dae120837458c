#include "api/python/bindings.h"
#include "base/system/thread_data.h"

PYBIND11_MODULE(_core, module) {
  using namespace ptkit::api::python;
  ptkit::base::allocate_data_with_threads();
  module.doc() = "The C++ core of ptkit. Its names are not public; use the package.";
  register_base(module);
  register_recorders(module);
  register_counts(module);
  register_coverage(module);
  register_enums(module);
  register_schema(module);
  register_bundle(module);
  register_call_notes(module);
  register_calls(module);
  register_timeline(module);
  register_timeline_files(module);
  register_runs(module);
  register_branches(module);
  register_open(module);
  register_export(module);
  register_readers(module);
  register_session(module);
  register_index(module);
  register_tables(module);
  register_packets(module);
  register_lines(module);
  register_symbols(module);
  register_arrow(module);
  register_engines(module);
  register_msr(module);
}
