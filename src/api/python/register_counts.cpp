// Counts of basic blocks and of their instructions, over arrays of blocks, and of runs between taken
// branches, which are read without the GIL.
#include <cstring>
#include <optional>
#include <utility>

#include "api/python/bindings.h"
#include "api/python/long_calls.h"
#include "api/python/reader_input.h"
#include "code/image/files/segments.h"
#include "tables/coverage/block_counts.h"
#include "tables/feedback/run_workers.h"

namespace ptkit::api::python {
namespace {

using tables::coverage::BlockCounts;
using tables::coverage::ExecutedBlock;
using tables::coverage::InstructionCount;

// A column, which may have stride 0: all rows have one value.
template <typename T>
class Cells {
 public:
  Cells(const py::array_t<T>& array, py::ssize_t rows)
      : bytes_(static_cast<const char*>(static_cast<const void*>(array.data()))), stride_(array.strides(0)) {
    if (array.ndim() != 1 || array.size() != rows) throw py::value_error("columns of one length are needed");
  }
  [[nodiscard]] T operator[](py::ssize_t row) const noexcept {
    T value;
    std::memcpy(&value, bytes_ + row * stride_, sizeof value);
    return value;
  }

 private:
  const char* bytes_;
  py::ssize_t stride_;
};

void add_blocks(BlockCounts& self, const py::array_t<std::uint64_t>& ips,
                const py::array_t<std::int32_t>& instructions, const py::array_t<std::uint8_t>& modes,
                const py::array_t<std::uint32_t>& spaces) {
  const py::ssize_t rows = ips.size();
  if (rows == 0) return;
  const Cells ip(ips, rows);
  const Cells size(instructions, rows);
  const Cells mode(modes, rows);
  const Cells space(spaces, rows);
  const py::gil_scoped_release nogil;
  for (py::ssize_t row = 0; row < rows; ++row)
    self.add({ip[row], static_cast<std::uint32_t>(size[row]), space[row],
              static_cast<code::insn::ExecMode>(mode[row])});
}

template <typename T, typename Member>
py::array_t<T> column_of(const std::vector<InstructionCount>& counts, Member member) {
  py::array_t<T> cells(static_cast<py::ssize_t>(counts.size()));
  T* out = cells.mutable_data();
  for (const InstructionCount& one : counts) *out++ = static_cast<T>(one.*member);
  return cells;
}

py::dict instructions(const BlockCounts& self, const Session& session) {
  std::vector<InstructionCount> counts;
  {
    const py::gil_scoped_release nogil;
    counts = count_instructions(self, *session.image);
  }
  if (session.callback != nullptr) session.callback->rethrow();
  py::dict columns;
  columns["ip"] = column_of<std::uint64_t>(counts, &InstructionCount::ip);
  columns["space"] = column_of<std::uint32_t>(counts, &InstructionCount::space);
  columns["size"] = column_of<std::uint8_t>(counts, &InstructionCount::size);
  columns["count"] = column_of<std::int64_t>(counts, &InstructionCount::count);
  columns["instructions"] = column_of<std::int64_t>(counts, &InstructionCount::instructions);
  return columns;
}

using tables::feedback::FileRun;
using tables::feedback::FileRuns;
using tables::feedback::RunTotals;
using tables::feedback::RunWorkers;
using tables::feedback::StreamRuns;

using Entries = std::vector<tables::feedback::CountTable<FileRun>::Entry>;

template <typename T, typename Value>
py::array_t<T> cells_of(const Entries& entries, Value value) {
  py::array_t<T> cells(static_cast<py::ssize_t>(entries.size()));
  T* out = cells.mutable_data();
  for (const auto& entry : entries) *out++ = static_cast<T>(value(entry));
  return cells;
}

py::dict columns_of(const Entries& entries) {
  py::dict columns;
  columns["from"] = cells_of<std::uint64_t>(entries, [](const auto& one) { return one.key.from; });
  columns["from_file"] = cells_of<std::int32_t>(entries, [](const auto& one) { return one.key.from_file; });
  columns["kind"] = cells_of<std::uint8_t>(entries, [](const auto& one) { return one.key.kind; });
  columns["file"] = cells_of<std::int32_t>(entries, [](const auto& one) { return one.key.file; });
  columns["begin"] = cells_of<std::uint64_t>(entries, [](const auto& one) { return one.key.begin; });
  columns["end"] = cells_of<std::uint64_t>(entries, [](const auto& one) { return one.key.end; });
  columns["flags"] = cells_of<std::uint8_t>(entries, [](const auto& one) { return one.key.flags; });
  columns["instructions"] =
      cells_of<std::uint64_t>(entries, [](const auto& one) { return one.key.instructions; });
  columns["count"] = cells_of<std::uint64_t>(entries, [](const auto& one) { return one.executions.count; });
  columns["mispredicted"] =
      cells_of<std::uint64_t>(entries, [](const auto& one) { return one.executions.mispredicted; });
  columns["predictions"] =
      cells_of<std::uint64_t>(entries, [](const auto& one) { return one.executions.predictions; });
  return columns;
}

py::dict totals_of(const RunTotals& totals) {
  py::dict found;
  found["instructions"] = totals.instructions;
  found["outside_instructions"] = totals.outside_instructions;
  found["unknown_instructions"] = totals.unknown_instructions;
  found["crossing_instructions"] = totals.crossing_instructions;
  found["unselected_instructions"] = totals.unselected_instructions;
  found["branches"] = totals.branches;
  found["outside_branches"] = totals.outside_branches;
  found["unselected_branches"] = totals.unselected_branches;
  found["errors"] = totals.errors;
  found["gaps"] = totals.gaps;
  return found;
}

// Large streams are decoded on several threads, one after the other.
std::size_t threads_of(const Session& session, const std::vector<std::uint32_t>& streams,
                       std::uint32_t stream, std::size_t threads) {
  std::uint64_t total = 0;
  for (const auto one : streams) total += session.bundle->streams[one].data.size();
  const std::uint64_t own = session.bundle->streams[stream].data.size();
  return own > total / std::max<std::size_t>(threads, 1) ? threads : 1;
}

std::optional<StreamRuns::Window> window_of(const py::object& window, const std::string& by) {
  if (window.is_none()) return std::nullopt;
  const auto [begin, end] = window.cast<std::pair<std::uint64_t, std::uint64_t>>();
  const auto unit = by == "time" ? tables::columns::PhasesBy::TIME : tables::columns::PhasesBy::INSTRUCTIONS;
  return StreamRuns::Window{unit, begin, end};
}

// (columns of the runs, totals)
py::tuple read_runs(const std::shared_ptr<Session>& session, const std::vector<std::uint32_t>& streams,
                    const py::dict& selection, const std::string& engine, const std::string& resync,
                    std::size_t threads, std::size_t segment,
                    const std::shared_ptr<tables::columns::RowBudget>& budget, const py::object& window,
                    const std::string& window_by, bool select_sides,
                    const std::shared_ptr<IndexHandle>& index) {
  const tables::columns::Selection selected = selection_of(selection);
  const tables::columns::IpSet ips(selected.ips);
  const auto limits = window_of(window, window_by);
  std::vector<tables::columns::TableReader::Input> inputs;
  for (const auto stream : streams) {
    inputs.push_back(reader_input(session, {{stream}, engine, resync, 1, false}));
    inputs.back().threads = threads_of(*session, streams, stream, threads);
    inputs.back().segment = segment;
    if (index != nullptr) inputs.back().index = index->index;
  }
  RunWorkers::Input input;
  input.streams = streams.size();
  input.threads = threads;
  input.budget = budget;
  input.empty = [&] { return FileRuns(*session->image, *session->loads, ips); };
  input.make = [&](std::size_t number, FileRuns& runs) {
    return std::make_unique<StreamRuns>(
        StreamRuns::Input{inputs[number], *session->image, selected, limits, select_sides}, runs);
  };
  const auto rethrow = [&] {
    if (session->callback != nullptr) session->callback->rethrow();
  };
  std::optional<FileRuns> found;
  {
    const py::gil_scoped_release release;
    RunWorkers workers(std::move(input));
    while (!workers.wait_for(kSignalPeriod)) {
      const py::gil_scoped_acquire gil;
      check_signals();
      rethrow();
    }
    if (!workers.out_of_memory()) {
      workers.runs().sort();
      found.emplace(std::move(workers.runs()));
    }
  }
  rethrow();
  if (!found) throw std::bad_alloc();
  return py::make_tuple(columns_of(found->runs().entries()), totals_of(found->totals()));
}

py::object linked_address(const Session& self, std::size_t file) {
  const auto linked = code::image::linked_address(self.bundle->files.at(file).contents.bytes());
  return linked ? py::cast(*linked) : py::none();
}

}  // namespace

void register_counts(py::module_& module) {
  py::class_<BlockCounts>(module, "BlockCounts", "How often each basic block was executed.")
      .def(py::init<>())
      .def("add", &add_blocks, py::arg("ip"), py::arg("instructions"), py::arg("mode"), py::arg("space"),
           "Counts rows of the table of blocks, by their columns.")
      .def("instructions", &instructions, py::arg("session"),
           "Columns of every instruction of the blocks, by space and address.");
  module.attr("RUN_FROM") = py::int_(static_cast<int>(tables::feedback::RUN_FROM));
  module.attr("RUN_BEGIN") = py::int_(static_cast<int>(tables::feedback::RUN_BEGIN));
  module.attr("RUN_END") = py::int_(static_cast<int>(tables::feedback::RUN_END));
  module.attr("RUN_CUT") = py::int_(static_cast<int>(tables::feedback::RUN_CUT));
  module.def("read_runs", &read_runs, py::arg("session"), py::kw_only(), py::arg("streams"),
             py::arg("selection"), py::arg("engine"), py::arg("resync"), py::arg("threads"),
             py::arg("segment") = 0, py::arg("budget") = py::none(), py::arg("window") = py::none(),
             py::arg("window_by") = "time", py::arg("select_sides") = false, py::arg("index") = py::none(),
             "Counted runs between taken branches, by file and RVA: (columns, totals).");
  module.def("linked_address", &linked_address, py::arg("session"), py::arg("file"),
             "The address that a file was linked for, which its RVAs count from; None: its bytes are not "
             "known, or it is no program.");
}

}  // namespace ptkit::api::python
