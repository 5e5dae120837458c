// Counts of runs between taken branches. Reads without the GIL.
#include <optional>
#include <utility>

#include "api/python/calls/call_query.h"
#include "code/image/files/segments.h"
#include "tables/feedback/stream_runs.h"

namespace ptkit::api::python {
namespace {

using tables::feedback::FileRun;
using tables::feedback::FileRuns;
using tables::feedback::RunTotals;
using tables::feedback::StreamRuns;

using Entries = std::vector<tables::feedback::CountTable<FileRun>::Entry>;

template <typename T, typename Value>
py::array_t<T> run_cells(const Entries& entries, Value value) {
  py::array_t<T> cells(static_cast<py::ssize_t>(entries.size()));
  T* out = cells.mutable_data();
  for (const auto& entry : entries) *out++ = static_cast<T>(value(entry));
  return cells;
}

py::dict run_columns(const Entries& entries) {
  py::dict columns;
  columns["from"] = run_cells<std::uint64_t>(entries, [](const auto& one) { return one.key.from; });
  columns["from_file"] = run_cells<std::int32_t>(entries, [](const auto& one) { return one.key.from_file; });
  columns["kind"] = run_cells<std::uint8_t>(entries, [](const auto& one) { return one.key.kind; });
  columns["file"] = run_cells<std::int32_t>(entries, [](const auto& one) { return one.key.file; });
  columns["begin"] = run_cells<std::uint64_t>(entries, [](const auto& one) { return one.key.begin; });
  columns["end"] = run_cells<std::uint64_t>(entries, [](const auto& one) { return one.key.end; });
  columns["flags"] = run_cells<std::uint8_t>(entries, [](const auto& one) { return one.key.flags; });
  columns["instructions"] =
      run_cells<std::uint64_t>(entries, [](const auto& one) { return one.key.instructions; });
  columns["count"] = run_cells<std::uint64_t>(entries, [](const auto& one) { return one.executions.count; });
  columns["mispredicted"] =
      run_cells<std::uint64_t>(entries, [](const auto& one) { return one.executions.mispredicted; });
  columns["predictions"] =
      run_cells<std::uint64_t>(entries, [](const auto& one) { return one.executions.predictions; });
  return columns;
}

py::dict run_totals(const RunTotals& totals) {
  py::dict found;
  RunTotals::for_each([&](const char* name, auto total) { found[name] = totals.*total; });
  return found;
}

// (columns of the runs, totals)
py::tuple read_runs(const CallQuery& query) {
  const tables::columns::IpSet ips(query.frames.ips);
  std::optional<StreamRuns::Window> window;
  if (query.window) window = {query.window->by, query.window->begin, query.window->end};
  const Session& session = *query.session;
  std::vector<std::unique_ptr<FileRuns>> of_streams(query.streams.size());
  const auto make = [&](std::size_t index) {
    tables::columns::TableReader::Input reader = query.inputs[index];
    reader.threads = query.threads_of(index);
    of_streams[index] = std::make_unique<FileRuns>(*session.image, *session.loads, ips);
    return std::make_unique<StreamRuns>(StreamRuns::Input{std::move(reader), *session.image, query.owners,
                                                          window, query.select_sides, query.budget},
                                        *of_streams[index]);
  };
  FileRuns all(*session.image, *session.loads, ips);
  Gathered gathered(query);
  read_streams<StreamRuns>(query, make, [&](std::size_t index, StreamRuns&) {
    all.add_all(std::move(*of_streams[index]));
    gathered.report(all.bytes());
  });
  all.sort();
  return py::make_tuple(run_columns(all.runs().entries()), run_totals(all.totals()));
}

py::object linked_address(const Session& self, std::size_t file) {
  const auto linked = code::image::linked_address(self.bundle->files.at(file).contents.bytes());
  return linked ? py::cast(*linked) : py::none();
}

}  // namespace

void register_runs(py::module_& module) {
  module.attr("RUN_FROM") = py::int_(static_cast<int>(tables::feedback::RUN_FROM));
  module.attr("RUN_BEGIN") = py::int_(static_cast<int>(tables::feedback::RUN_BEGIN));
  module.attr("RUN_END") = py::int_(static_cast<int>(tables::feedback::RUN_END));
  module.attr("RUN_CUT") = py::int_(static_cast<int>(tables::feedback::RUN_CUT));
  module.def("read_runs", &read_runs, py::arg("query"),
             "Counted runs between taken branches, by file and RVA: (columns, totals). The window selects "
             "runs that end within it.");
  module.def("linked_address", &linked_address, py::arg("session"), py::arg("file"),
             "The address that a file was linked for, which its RVAs count from; None: its bytes are not "
             "known, or it is no program.");
}

}  // namespace ptkit::api::python
