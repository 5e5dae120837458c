// How branches behave: outcomes, targets, loops. Reads without the GIL.
#include <atomic>
#include <utility>

#include "api/python/calls/call_query.h"
#include "tables/branches/loop_folder.h"
#include "tables/branches/loop_paths.h"
#include "tables/branches/loop_sums.h"
#include "tables/branches/stream_branches.h"

namespace ptkit::api::python {
namespace {

using tables::branches::BranchRuns;
using tables::branches::BranchTotals;
using tables::branches::FoldToken;
using tables::branches::LoopFolder;
using tables::branches::LoopMap;
using tables::branches::LoopPaths;
using tables::branches::LoopSums;
using tables::branches::LoopTrips;
using tables::branches::LoopWalk;
using tables::branches::PathNode;
using tables::branches::StreamBranches;
using tables::calls::StreamCalls;

constexpr unsigned kMedian = 50;  // per cent
constexpr unsigned kNearlyAll = 99;

template <typename T, typename Rows, typename Value>
py::array_t<T> cells_of(Rows&& rows, Value value) {
  py::array_t<T> cells(static_cast<py::ssize_t>(rows.size()));
  T* out = cells.mutable_data();
  for (auto& row : rows) *out++ = static_cast<T>(value(row));
  return cells;
}

py::dict conditional_columns(const std::vector<BranchRuns>& rows) {
  py::dict columns;
  columns["from_ip"] = cells_of<std::uint64_t>(rows, [](const auto& row) { return row.ip; });
  columns["space"] = cells_of<std::uint32_t>(rows, [](const auto& row) { return row.space; });
  columns["taken"] = cells_of<std::int64_t>(rows, [](const auto& row) { return row.executions[1]; });
  columns["not_taken"] = cells_of<std::int64_t>(rows, [](const auto& row) { return row.executions[0]; });
  columns["runs"] = cells_of<std::int64_t>(
      rows, [](const auto& row) { return row.lengths[0].count() + row.lengths[1].count(); });
  columns["cut_runs"] = cells_of<std::int64_t>(rows, [](const auto& row) { return row.cut; });
  columns["longest_taken"] =
      cells_of<std::int64_t>(rows, [](const auto& row) { return row.lengths[1].max(); });
  columns["longest_not_taken"] =
      cells_of<std::int64_t>(rows, [](const auto& row) { return row.lengths[0].max(); });
  columns["run_entropy"] = cells_of<double>(rows, [](const auto& row) { return row.run_entropy(); });
  columns["exact"] =
      cells_of<bool>(rows, [](const auto& row) { return row.lengths[0].exact() && row.lengths[1].exact(); });
  return columns;
}

py::dict indirect_columns(const std::vector<tables::columns::Edge>& rows) {
  py::dict columns;
  columns["from_ip"] = cells_of<std::uint64_t>(rows, [](const auto& row) { return row.from_ip; });
  columns["to_ip"] = cells_of<std::uint64_t>(rows, [](const auto& row) { return row.to_ip; });
  columns["space"] = cells_of<std::uint32_t>(rows, [](const auto& row) { return row.space; });
  columns["kind"] = cells_of<std::uint8_t>(rows, [](const auto& row) { return flow::kind_of(row.kind); });
  columns["to_known"] = cells_of<bool>(rows, [](const auto& row) { return !flow::is_half_edge(row.kind); });
  columns["count"] = cells_of<std::int64_t>(rows, [](const auto& row) { return row.count; });
  return columns;
}

// ((columns of conditional branches, columns of edges of indirect ones, whether control flow is known
// throughout), errors, gaps)
py::tuple read_branch_stats(const CallQuery& query) {
  BranchTotals totals;
  ErrorTables errors;
  const auto make = [&](std::size_t index) {
    return std::make_unique<StreamBranches>(query.input(index, query.threads_of(index), {}));
  };
  read_streams<StreamBranches>(query, make, [&](std::size_t, StreamBranches& stream) {
    errors.add(stream);
    totals.add_all(stream.take());
  });
  totals.indirect.sort();
  return errors.take(py::make_tuple(conditional_columns(totals.conditional),
                                    indirect_columns(totals.indirect.edges()), !totals.has_gaps));
}

template <typename T>
using Array = py::array_t<T, py::array::c_style>;

// Arrays of equal length: of loops, and of the instructions of functions that have some.
std::shared_ptr<LoopMap> make_loop_map(const Array<std::uint64_t>& heads, const Array<std::uint32_t>& spaces,
                                       const Array<std::int32_t>& outer, const Array<std::uint64_t>& first,
                                       const Array<std::uint64_t>& last,
                                       const Array<std::uint32_t>& code_spaces,
                                       const Array<std::uint32_t>& functions,
                                       const Array<std::int32_t>& loops) {
  std::vector<tables::branches::Loop> found;
  for (py::ssize_t i = 0; i < heads.size(); ++i) {
    if (outer.at(i) >= i) throw py::value_error("outer loops come first");
    found.push_back({heads.at(i), spaces.at(i), outer.at(i)});
  }
  std::vector<tables::branches::LoopCode> code;
  for (py::ssize_t i = 0; i < first.size(); ++i) {
    if (loops.at(i) >= heads.size()) throw py::value_error("code of a loop that is not given");
    code.push_back({first.at(i), last.at(i), code_spaces.at(i), functions.at(i), loops.at(i)});
  }
  return std::make_shared<LoopMap>(std::move(found), std::move(code));
}

// Follows each stream's frames through loops, with a watcher of its own.
template <typename Watcher, typename MakeWatcher, typename Take>
void read_through_loops(const CallQuery& query, const LoopMap& map, ErrorTables& errors,
                        const MakeWatcher& make_watcher, const Take& take) {
  std::vector<std::unique_ptr<Watcher>> watchers;
  std::vector<std::unique_ptr<LoopWalk>> walks;
  for (std::size_t i = 0; i < query.streams.size(); ++i) {
    watchers.push_back(make_watcher());
    walks.push_back(std::make_unique<LoopWalk>(map, *watchers.back(), query.window.has_value()));
  }
  const auto open = [&](std::size_t index) {
    return query.open(index, query.threads_of(index), *walks[index],
                      {.probe = walks[index].get(), .all_branches = true});
  };
  read_streams<StreamCalls>(query, open, [&](std::size_t index, StreamCalls& calls) {
    errors.add(calls);
    take(*watchers[index]);
    walks[index].reset();
    watchers[index].reset();
  });
}

// (columns of each loop, errors, gaps)
py::tuple read_loops(const CallQuery& query, const LoopMap& map) {
  std::vector<LoopTrips> all(map.size());
  ErrorTables errors;
  read_through_loops<LoopSums>(
      query, map, errors, [&] { return std::make_unique<LoopSums>(map.size()); },
      [&](LoopSums& sums) {
        for (std::size_t i = 0; i < all.size(); ++i) all[i].add_all(sums.sums()[i]);
      });
  py::dict columns;
  columns["visits"] = cells_of<std::int64_t>(all, [](const auto& one) { return one.trips.count(); });
  columns["rounds"] = cells_of<std::int64_t>(all, [](const auto& one) { return one.rounds; });
  columns["cut"] = cells_of<std::int64_t>(all, [](const auto& one) { return one.cut; });
  columns["least"] = cells_of<std::int64_t>(all, [](auto& one) { return one.trips.quantile(0); });
  columns["p50"] = cells_of<std::int64_t>(all, [](auto& one) { return one.trips.quantile(kMedian); });
  columns["p99"] = cells_of<std::int64_t>(all, [](auto& one) { return one.trips.quantile(kNearlyAll); });
  columns["most"] = cells_of<std::int64_t>(all, [](const auto& one) { return one.trips.max(); });
  columns["exact"] = cells_of<bool>(all, [](const auto& one) { return one.trips.exact(); });
  return errors.take(columns);
}

py::dict path_columns(const std::vector<PathNode>& nodes) {
  py::dict columns;
  columns["from_ip"] = cells_of<std::uint64_t>(nodes, [](const auto& one) { return one.step.from_ip; });
  columns["to_ip"] = cells_of<std::uint64_t>(nodes, [](const auto& one) { return one.step.to_ip; });
  columns["kind"] = cells_of<std::uint8_t>(nodes, [](const auto& one) { return one.step.kind; });
  columns["parent"] = cells_of<std::int64_t>(nodes, [](const auto& one) { return one.parent; });
  columns["loop"] = cells_of<std::int32_t>(nodes, [](const auto& one) { return one.loop; });
  columns["rounds"] = cells_of<std::int64_t>(nodes, [](const auto& one) { return one.rounds; });
  columns["exits"] = cells_of<std::int64_t>(nodes, [](const auto& one) { return one.exits; });
  return columns;
}

// (columns of the nodes of each stream's paths, errors, gaps)
py::tuple read_loop_paths(const CallQuery& query, const LoopMap& map, const Array<std::uint8_t>& wanted) {
  if (static_cast<std::size_t>(wanted.size()) != map.size()) throw py::value_error("one for each loop");
  const std::vector<std::uint8_t> loops(wanted.data(), wanted.data() + wanted.size());
  std::vector<std::vector<PathNode>> of_streams;
  ErrorTables errors;
  read_through_loops<LoopPaths>(
      query, map, errors, [&] { return std::make_unique<LoopPaths>(map, loops); },
      [&](LoopPaths& paths) { of_streams.push_back(paths.nodes()); });
  py::list found;
  for (const std::vector<PathNode>& nodes : of_streams) found.append(path_columns(nodes));
  return errors.take(found);
}

// Folded rows in parts, stream by stream.
struct FoldReader {
  std::shared_ptr<CallQuery> query;
  std::shared_ptr<LoopMap> map;
  std::unique_ptr<LoopFolder> folder;
  std::unique_ptr<LoopWalk> walk;
  std::unique_ptr<StreamCalls> calls;
  ErrorTables errors;
  std::size_t next = 0;
  std::size_t most_items;
  std::atomic<bool> busy{false};

  FoldReader(std::shared_ptr<CallQuery> of, std::shared_ptr<LoopMap> loops, std::size_t most)
      : query(std::move(of)), map(std::move(loops)), most_items(most) {}
  // The reader's destructor joins its threads, which may wait for the GIL in a callback.
  ~FoldReader() {
    const py::gil_scoped_release release;
    calls.reset();
  }
  FoldReader(const FoldReader&) = delete;
  FoldReader& operator=(const FoldReader&) = delete;

  // Works for a few milliseconds. False: the stream has ended.
  [[nodiscard]] bool work() {
    const auto step = calls->step();
    if (step == StreamCalls::Step::MORE) return true;
    if (step != StreamCalls::Step::END) throw std::bad_alloc();
    folder->finish();
    errors.add(*calls);
    calls.reset();
    return false;
  }
};

// (stream, columns of tokens, errors, gaps): about `most` tokens or more of one stream; None: there are no
// more.
py::object read_folded(FoldReader& self, std::size_t most) {
  const ExclusiveUse use(self.busy, "another thread reads from this reader");
  if (self.calls == nullptr) {
    if (self.next == self.query->streams.size()) return py::none();
    self.folder = std::make_unique<LoopFolder>(*self.map, self.most_items);
    self.walk = std::make_unique<LoopWalk>(*self.map, *self.folder, self.query->window.has_value());
    self.calls = self.query->open(self.next++, self.query->threads, *self.walk,
                                  {.probe = self.walk.get(), .all_branches = true});
  }
  {
    const py::gil_scoped_release release;
    auto last = std::chrono::steady_clock::now();
    while (self.folder->size() < most && self.work()) {
      if (std::chrono::steady_clock::now() - last < kSignalPeriod) continue;
      const py::gil_scoped_acquire gil;
      check_signals();
      self.query->rethrow();
      last = std::chrono::steady_clock::now();
    }
    if (self.calls != nullptr) self.errors.add(*self.calls);
  }
  check_signals();
  self.query->rethrow();
  const std::vector<FoldToken> tokens = self.folder->take();
  py::dict columns;
  columns["op"] = cells_of<std::uint8_t>(tokens, [](const auto& one) { return one.op; });
  columns["first"] = cells_of<std::uint64_t>(tokens, [](const auto& one) { return one.first; });
  columns["second"] = cells_of<std::uint64_t>(tokens, [](const auto& one) { return one.second; });
  columns["kind"] = cells_of<std::uint8_t>(tokens, [](const auto& one) { return one.kind; });
  columns["flags"] = cells_of<std::uint8_t>(tokens, [](const auto& one) { return one.flags; });
  py::object found = self.errors.take(py::make_tuple(self.query->streams[self.next - 1], columns));
  self.errors = {};
  return found;
}

}  // namespace

void register_branches(py::module_& module) {
  py::class_<LoopMap, std::shared_ptr<LoopMap>>(module, "LoopMap", "Loops of functions by address.")
      .def(py::init(&make_loop_map), py::kw_only(), py::arg("head"), py::arg("space"), py::arg("outer"),
           py::arg("code_first"), py::arg("code_last"), py::arg("code_space"), py::arg("code_function"),
           py::arg("code_loop"));
  py::class_<FoldReader>(module, "FoldReader", "Rows with repetitions of loops folded, in parts.")
      .def(py::init<std::shared_ptr<CallQuery>, std::shared_ptr<LoopMap>, std::size_t>(), py::arg("query"),
           py::arg("loops"), py::kw_only(), py::arg("most_items") = LoopFolder::kMostItems)
      .def("read", &read_folded, py::arg("tokens"));
  module.def("read_loops", &read_loops, py::arg("query"), py::arg("loops"),
             "(sums over the visits of each loop, errors, gaps).");
  module.def("read_loop_paths", &read_loop_paths, py::arg("query"), py::arg("loops"), py::arg("wanted"),
             "(nodes of the paths of each stream, errors, gaps).");
  module.def("read_branch_stats", &read_branch_stats, py::arg("query"),
             "((conditional branches, edges of indirect branches, control flow is known throughout), errors, "
             "gaps).");
}

}  // namespace ptkit::api::python
