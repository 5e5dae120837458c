// Call stacks: frames as tables, and sums over functions. Reads without the GIL.
#include <algorithm>
#include <atomic>
#include <utility>

#include "bindings/bindings.h"
#include "bindings/long_calls.h"
#include "bindings/reader_input.h"
#include "calls/call_crew.h"
#include "calls/call_tree.h"
#include "calls/frame_rows.h"
#include "calls/function_totals.h"

namespace ptkit::bindings {
namespace {

using calls::StreamCalls;

constexpr const char* kReaderInUse = "another thread reads from this reader";

// What all reads of calls have in common.
struct CallQuery {
  std::shared_ptr<Session> session;
  std::vector<std::uint32_t> streams;
  std::vector<columns::TableReader::Input> inputs;  // of each stream
  columns::Selection frames;                        // selects frames
  columns::Selection owners;                        // selects threads, processes and spaces
  std::size_t threads = 1;
  bool time = true;
  calls::Tails tails = calls::Tails::NESTED;
  calls::By by = calls::By::FUNCTION;

  [[nodiscard]] std::unique_ptr<StreamCalls> open(std::size_t index, std::size_t own_threads,
                                                  calls::FrameSink& sink) const {
    columns::TableReader::Input input = inputs[index];
    input.threads = own_threads;
    return std::make_unique<StreamCalls>(
        StreamCalls::Input{std::move(input), *session->image, *session->symbols, owners, time,
                           session->tail_jumps.get(), tails, by},
        sink);
  }
  // Large streams are decoded on several threads, one after the other.
  [[nodiscard]] std::size_t threads_of(std::size_t index) const {
    std::uint64_t total = 0;
    for (const auto stream : streams) total += session->bundle->streams[stream].data.size();
    const std::uint64_t own = session->bundle->streams[streams[index]].data.size();
    return own > total / std::max<std::size_t>(threads, 1) ? threads : 1;
  }
  void rethrow() const {
    if (session->callback != nullptr) session->callback->rethrow();
  }
};

std::shared_ptr<CallQuery> make_query(std::shared_ptr<Session> session, std::vector<std::uint32_t> streams,
                                      const py::dict& selection, const std::string& engine,
                                      const std::string& resync, std::size_t threads, bool time,
                                      bool tails_replaced, const std::string& by) {
  auto query = std::make_shared<CallQuery>();
  query->session = std::move(session);
  query->streams = std::move(streams);
  query->frames = selection_of(selection);
  query->owners.pids = query->frames.pids;
  query->owners.tids = query->frames.tids;
  query->owners.spaces = query->frames.spaces;
  query->threads = threads;
  query->time = time;
  if (tails_replaced) query->tails = calls::Tails::REPLACED;
  if (by == "entry") query->by = calls::By::ENTRY;
  if (by == "module") query->by = calls::By::MODULE;
  for (const auto stream : query->streams)
    query->inputs.push_back(reader_input(query->session, {{stream}, engine, resync, 1, false}));
  return query;
}

// Reads all streams. `sinks`: of each stream; `take` gets them in order.
void read_streams(const CallQuery& query, const std::vector<calls::FrameSink*>& sinks,
                  const calls::CallCrew::Take& take) {
  bool out_of_memory = false;
  {
    const py::gil_scoped_release release;
    calls::CallCrew crew(
        query.streams.size(), query.threads,
        [&](std::size_t index) { return query.open(index, query.threads_of(index), *sinks[index]); }, take);
    while (!crew.wait_for(kSignalPeriod)) {
      const py::gil_scoped_acquire gil;
      check_signals();
      query.rethrow();
    }
    out_of_memory = crew.out_of_memory();
  }
  query.rethrow();
  if (out_of_memory) throw std::bad_alloc();
}

template <typename Sink>
std::vector<calls::FrameSink*> pointers_to(const std::vector<std::unique_ptr<Sink>>& sinks) {
  std::vector<calls::FrameSink*> pointers;
  for (const auto& sink : sinks) pointers.push_back(sink.get());
  return pointers;
}

void append(std::unique_ptr<columns::Batch>& all, std::unique_ptr<columns::Batch> more) {
  if (more == nullptr) throw std::bad_alloc();
  if (all == nullptr) {
    all = std::move(more);
  } else if (!all->append(std::move(*more))) {
    throw std::bad_alloc();
  }
}

// (calls, anomalies)
py::tuple read_calls(const CallQuery& query, const std::vector<std::string>& names) {
  std::vector<std::unique_ptr<calls::FrameTable>> tables;
  const auto mask = mask_of(columns::TableId::calls, names);
  for (const auto stream : query.streams)
    tables.push_back(std::make_unique<calls::FrameTable>(query.frames, mask, stream));
  std::unique_ptr<columns::Batch> all;
  std::unique_ptr<columns::Batch> anomalies;
  std::uint64_t first_id = 0;
  read_streams(query, pointers_to(tables), [&](std::size_t index, const StreamCalls&) {
    calls::FrameTable& table = *tables[index];
    append(all, table.take(first_id));
    append(anomalies, table.take_anomalies(first_id));
    first_id += table.ids();
  });
  const auto or_none = [](std::unique_ptr<columns::Batch>& batch, columns::TableId table,
                          columns::ColumnMask some) {
    if (batch == nullptr) batch = std::make_unique<columns::Batch>(table, some);
    batch->shrink();
    return batch_to_python(std::move(batch));
  };
  return py::make_tuple(or_none(all, columns::TableId::calls, mask),
                        or_none(anomalies, columns::TableId::stack_anomalies, columns::kAllColumns));
}

py::tuple read_functions(const CallQuery& query, const std::vector<std::string>& names) {
  std::vector<std::unique_ptr<calls::FunctionTotals>> totals;
  for (std::size_t i = 0; i < query.streams.size(); ++i)
    totals.push_back(std::make_unique<calls::FunctionTotals>(query.frames));
  calls::FunctionTotals all(query.frames);
  read_streams(query, pointers_to(totals), [&](std::size_t index, const StreamCalls& calls) {
    all.add_all(*totals[index], calls.groups());
    totals[index].reset();
  });
  auto rows = all.rows(mask_of(columns::TableId::functions, names));
  if (rows == nullptr) throw std::bad_alloc();
  return batch_to_python(std::move(rows));
}

py::tuple read_tree(const CallQuery& query, const std::vector<std::string>& names) {
  std::vector<std::unique_ptr<calls::CallTree>> trees;
  for (std::size_t i = 0; i < query.streams.size(); ++i) trees.push_back(std::make_unique<calls::CallTree>());
  calls::CallTree all;
  read_streams(query, pointers_to(trees), [&](std::size_t index, const StreamCalls& calls) {
    all.add_all(*trees[index], calls.functions());
    trees[index].reset();
  });
  auto rows = all.rows(mask_of(columns::TableId::call_tree, names));
  if (rows == nullptr) throw std::bad_alloc();
  return batch_to_python(std::move(rows));
}

// Frames in the order in which they end, in parts.
struct CallReader {
  std::shared_ptr<CallQuery> query;
  calls::FrameList frames;
  std::unique_ptr<StreamCalls> calls;
  std::size_t next = 0;
  std::atomic<bool> busy{false};

  CallReader(std::shared_ptr<CallQuery> of, const std::vector<std::string>& names)
      : query(std::move(of)), frames(query->frames, mask_of(columns::TableId::calls, names)) {}
  // The reader's destructor joins its threads, which may wait for the GIL in a callback.
  ~CallReader() {
    const py::gil_scoped_release release;
    calls.reset();
  }
  CallReader(const CallReader&) = delete;
  CallReader& operator=(const CallReader&) = delete;

  // Works for a few milliseconds. False: there are no more frames.
  [[nodiscard]] bool work() {
    if (calls == nullptr) {
      if (next == query->streams.size()) return false;
      frames.begin_stream(query->streams[next]);
      calls = query->open(next++, query->threads, frames);
    }
    const auto step = calls->step();
    if (step == StreamCalls::Step::NO_MEMORY || frames.out_of_memory()) throw std::bad_alloc();
    if (step == StreamCalls::Step::END) calls.reset();
    return true;
  }
};

// Up to `rows` rows; fewer only at the end.
py::tuple read_part(CallReader& self, std::size_t rows) {
  const ExclusiveUse use(self.busy, kReaderInUse);
  std::unique_ptr<columns::Batch> part;
  {
    const py::gil_scoped_release release;
    auto last = std::chrono::steady_clock::now();
    while (self.frames.rows() < rows && self.work()) {
      if (std::chrono::steady_clock::now() - last < kSignalPeriod) continue;
      const py::gil_scoped_acquire gil;
      check_signals();
      self.query->rethrow();
      last = std::chrono::steady_clock::now();
    }
    part = self.frames.take(rows);
  }
  self.query->rethrow();
  if (part == nullptr) throw std::bad_alloc();
  return batch_to_python(std::move(part));
}

}  // namespace

void register_calls(py::module_& module) {
  py::class_<CallQuery, std::shared_ptr<CallQuery>>(module, "CallQuery", "Which frames of which streams.")
      .def(py::init(&make_query), py::arg("session"), py::kw_only(), py::arg("streams"), py::arg("selection"),
           py::arg("engine"), py::arg("resync"), py::arg("threads"), py::arg("time"),
           py::arg("tails_replaced") = false, py::arg("by") = "function")
      .def("calls", &read_calls, py::arg("columns"), "All frames by id, and the anomalies.")
      .def("functions", &read_functions, py::arg("columns"), "Sums over the frames of each group.")
      .def("tree", &read_tree, py::arg("columns"), "Sums over the frames of each calling context.");
  py::class_<CallReader>(module, "CallReader", "Frames in the order in which they end, in parts.")
      .def(py::init<std::shared_ptr<CallQuery>, const std::vector<std::string>&>(), py::arg("query"),
           py::kw_only(), py::arg("columns"))
      .def("read", &read_part, py::arg("rows"));
}

}  // namespace ptkit::bindings
