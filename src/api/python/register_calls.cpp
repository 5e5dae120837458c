// Call stacks: frames as tables, and sums over functions. Reads without the GIL.
#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "api/python/bindings.h"
#include "api/python/long_calls.h"
#include "api/python/reader_input.h"
#include "code/symbol/names/python_name.h"
#include "tables/calls/call_workers.h"
#include "tables/calls/frame_rows.h"
#include "tables/calls/python_frames.h"
#include "tables/calls/stack/frame.h"
#include "tables/calls/stack_probe.h"
#include "tables/calls/sums/call_sums.h"

namespace ptkit::api::python {
namespace {

using tables::calls::CallSums;
using tables::calls::StreamCalls;

constexpr const char* kReaderInUse = "another thread reads from this reader";

// Options for the frames of a stream, and results beside those that a sink gets.
struct Looks {
  tables::calls::StackProbe* probe = nullptr;
  bool all_branches = false;
  bool all_groups = false;
  std::vector<tables::calls::StackStates>* noted = nullptr;  // of each stream
};

// Arguments that all reads of calls have in common.
struct CallQuery {
  std::shared_ptr<Session> session;
  std::vector<std::uint32_t> streams;
  std::vector<tables::columns::TableReader::Input> inputs;  // of each stream
  tables::columns::Selection frames;                        // selects frames
  tables::columns::Selection owners;                        // selects threads, processes and spaces
  std::size_t threads = 1;
  bool time = true;
  tables::calls::Tails tails = tables::calls::Tails::NESTED;
  tables::calls::FrameView frames_shown = tables::calls::FrameView::NATIVE;
  bool inlines = false;
  std::shared_ptr<tables::columns::RowBudget> budget;
  std::optional<StreamCalls::Input::Window> window;
  std::vector<std::optional<tables::calls::StackStates>> states;  // of each stream, or none

  [[nodiscard]] std::unique_ptr<StreamCalls> open(std::size_t index, std::size_t own_threads,
                                                  tables::calls::FrameSink& sink, const Looks& looks) const {
    tables::columns::TableReader::Input input = inputs[index];
    input.threads = own_threads;
    StreamCalls::Input how{std::move(input),
                           *session->image,
                           *session->recorded_symbols,
                           owners,
                           time,
                           looks.all_branches ? nullptr : session->tail_jumps.get(),
                           tails,
                           looks.all_groups,
                           frames_shown,
                           looks.probe,
                           inlines ? session->debug.get() : nullptr,
                           budget,
                           window};
    if (looks.noted != nullptr) how.noted = &(*looks.noted)[index];
    if (!states.empty() && states[index]) {
      StreamCalls::Input from = how;
      from.states = &*states[index];
      auto calls = std::make_unique<StreamCalls>(std::move(from), sink);
      if (calls->good()) return calls;
    }
    return std::make_unique<StreamCalls>(std::move(how), sink);
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
                                      bool tails_replaced, const std::string& frames, bool inlines,
                                      std::shared_ptr<tables::columns::RowBudget> budget,
                                      const py::object& window, const std::string& window_by,
                                      bool select_sides, const std::shared_ptr<IndexHandle>& index,
                                      const std::vector<py::buffer>& states) {
  if (inlines && !session->debug) throw py::value_error("a session without folders for debug files");
  auto query = std::make_shared<CallQuery>();
  query->session = std::move(session);
  query->streams = std::move(streams);
  query->frames = selection_of(selection);
  query->owners.pids = query->frames.pids;
  query->owners.tids = query->frames.tids;
  query->owners.spaces = query->frames.spaces;
  query->threads = threads;
  query->time = time;
  if (tails_replaced) query->tails = tables::calls::Tails::REPLACED;
  if (frames == "python") query->frames_shown = tables::calls::FrameView::PYTHON;
  if (frames == "mixed") query->frames_shown = tables::calls::FrameView::MIXED;
  query->inlines = inlines;
  query->budget = std::move(budget);
  if (!window.is_none()) {
    const auto [begin, end] = window.cast<std::pair<std::uint64_t, std::uint64_t>>();
    const bool by_time = window_by == "time";
    query->window = {by_time ? tables::columns::PhasesBy::TIME : tables::columns::PhasesBy::INSTRUCTIONS,
                     begin, end, !select_sides};
  }
  for (const auto stream : query->streams)
    query->inputs.push_back(reader_input(query->session, {{stream}, engine, resync, 1, false}));
  if (index == nullptr) return query;
  for (tables::columns::TableReader::Input& input : query->inputs) input.index = index->index;
  if (!query->window || states.size() != query->streams.size()) return query;
  for (const py::buffer& state : states) {
    const trace::TraceBuffer bytes = buffer_from_python(state, "states");
    query->states.push_back(tables::calls::StackStates::from_bytes(bytes.bytes(), *query->session->bundle));
  }
  return query;
}

// Reads all streams, each with the reader that `open` makes; `take` gets them in order.
void read_streams(const CallQuery& query, const tables::calls::CallWorkers::Make& open,
                  const tables::calls::CallWorkers::Take& take) {
  bool out_of_memory = false;
  {
    const py::gil_scoped_release release;
    tables::calls::CallWorkers workers(query.streams.size(), query.threads, open, take);
    while (!workers.wait_for(kSignalPeriod)) {
      const py::gil_scoped_acquire gil;
      check_signals();
      query.rethrow();
    }
    out_of_memory = workers.out_of_memory();
  }
  query.rethrow();
  if (out_of_memory) throw std::bad_alloc();
}

// Makes readers with a sink each.
template <typename Sink>
tables::calls::CallWorkers::Make into(const CallQuery& query, const std::vector<std::unique_ptr<Sink>>& sinks,
                                      const Looks& looks = {}) {
  return [&query, &sinks, looks](std::size_t index) {
    return query.open(index, query.threads_of(index), *sinks[index], looks);
  };
}

void append(std::unique_ptr<tables::columns::Batch>& all, std::unique_ptr<tables::columns::Batch> more) {
  if (more == nullptr) throw std::bad_alloc();
  if (all == nullptr) {
    all = std::move(more);
  } else if (!all->append(std::move(*more))) {
    throw std::bad_alloc();
  }
}

[[nodiscard]] py::tuple to_python(std::unique_ptr<tables::columns::Batch>& batch,
                                  tables::columns::TableId table,
                                  tables::columns::ColumnMask mask = tables::columns::kAllColumns) {
  if (batch == nullptr) batch = std::make_unique<tables::columns::Batch>(table, mask);
  batch->shrink();
  return batch_to_python(std::move(batch));
}

// Memory of what all streams have together. Throws std::bad_alloc if what follows does not fit.
class Gathered {
 public:
  explicit Gathered(const CallQuery& query) : budget_(query.budget) {}
  ~Gathered() {
    if (budget_ != nullptr) static_cast<void>(budget_->report_bytes(share_, 0, 0));
  }
  Gathered(const Gathered&) = delete;
  Gathered& operator=(const Gathered&) = delete;
  void report(std::uint64_t bytes) {
    if (budget_ != nullptr &&
        budget_->report_bytes(share_, bytes, 0) == tables::columns::RowBudget::Answer::STOP)
      throw std::bad_alloc();
  }

 private:
  std::shared_ptr<tables::columns::RowBudget> budget_;
  tables::columns::RowBudget::Share share_;
};

// Rows of decode errors and of gaps.
struct ErrorTables {
  std::unique_ptr<tables::columns::Batch> errors;
  std::unique_ptr<tables::columns::Batch> gaps;

  void add(StreamCalls& calls) {
    append(errors, calls.take_errors());
    append(gaps, calls.take_gaps());
  }
  [[nodiscard]] py::tuple take(py::object rows) {
    return py::make_tuple(std::move(rows), to_python(errors, tables::columns::TableId::errors),
                          to_python(gaps, tables::columns::TableId::gaps));
  }
};

// Sums of each stream, and those of all streams together.
class StreamSums {
 public:
  StreamSums(const CallQuery& query, CallSums::Tree tree) : all_(query.frames, tree) {
    for (std::size_t i = 0; i < query.streams.size(); ++i)
      of_streams_.push_back(std::make_unique<CallSums>(query.frames, tree));
  }
  [[nodiscard]] const std::vector<std::unique_ptr<CallSums>>& of_streams() const { return of_streams_; }
  void end_stream(std::size_t index, const StreamCalls& calls) {
    all_.add_all(std::move(*of_streams_[index]), calls.functions(), calls.groups());
    of_streams_[index].reset();
  }
  [[nodiscard]] std::uint64_t bytes() const { return all_.bytes(); }
  // Rows by what the frames are summed up by, and "tree", if that was not dropped.
  [[nodiscard]] py::dict to_python() {
    py::dict found;
    for (const auto& [name, by] :
         {std::pair("function", tables::calls::By::FUNCTION), std::pair("entry", tables::calls::By::ENTRY),
          std::pair("module", tables::calls::By::MODULE)})
      found[name] = rows_to_python(
          all_.functions(by, tables::columns::usual_columns(tables::columns::TableId::functions)));
    if (all_.has_tree())
      found["tree"] =
          rows_to_python(all_.tree(tables::columns::usual_columns(tables::columns::TableId::call_tree)));
    return found;
  }

 private:
  [[nodiscard]] static py::tuple rows_to_python(std::unique_ptr<tables::columns::Batch> rows) {
    if (rows == nullptr) throw std::bad_alloc();
    rows->shrink();
    return batch_to_python(std::move(rows));
  }

  std::vector<std::unique_ptr<CallSums>> of_streams_;
  CallSums all_;
};

// ((calls, anomalies, notes, sums or None), errors, gaps). `with_sums`: what read_sums() gives, too.
py::tuple read_calls(const CallQuery& query, const std::vector<std::string>& names, bool with_sums) {
  std::vector<std::unique_ptr<tables::calls::FrameTable>> tables;
  std::vector<std::unique_ptr<tables::calls::TwoSinks>> sinks;
  const auto mask = mask_of(tables::columns::TableId::calls, names);
  const auto tree = with_sums ? CallSums::Tree::SMALL : CallSums::Tree::NONE;
  StreamSums sums(query, tree);
  for (std::size_t i = 0; i < query.streams.size(); ++i) {
    tables.push_back(std::make_unique<tables::calls::FrameTable>(
        query.frames, mask, query.streams[i], query.frames_shown != tables::calls::FrameView::NATIVE));
    sinks.push_back(std::make_unique<tables::calls::TwoSinks>(*tables[i], *sums.of_streams()[i]));
  }
  std::unique_ptr<tables::columns::Batch> all;
  std::unique_ptr<tables::columns::Batch> anomalies;
  ErrorTables errors;
  Gathered gathered(query);
  const auto notes = std::make_shared<tables::calls::FrameIndex>();
  const auto open = with_sums ? into(query, sinks, {.all_groups = true}) : into(query, tables);
  read_streams(query, open, [&](std::size_t index, StreamCalls& calls) {
    errors.add(calls);
    if (with_sums) sums.end_stream(index, calls);
    tables::calls::FrameTable& table = *tables[index];
    const std::uint64_t first_id = notes->frames();
    append(all, table.take(first_id, calls.functions(), *notes));
    append(anomalies, table.take_anomalies(first_id));
    gathered.report(all->bytes() + anomalies->bytes() + notes->bytes() + sums.bytes());
  });
  return errors.take(py::make_tuple(to_python(all, tables::columns::TableId::calls, mask),
                                    to_python(anomalies, tables::columns::TableId::stack_anomalies), notes,
                                    with_sums ? py::object(sums.to_python()) : py::object(py::none())));
}

// ((sums, states), errors, gaps). `tree`: the tree is wanted. `kept`: other sums may be wanted later.
// `noted`: states of each stream for an index; else there are none.
py::tuple read_sums(const CallQuery& query, bool tree, bool kept, bool noted) {
  const bool has_tree = kept && query.tails == tables::calls::Tails::NESTED;
  StreamSums sums(query, tree       ? CallSums::Tree::WHOLE
                         : has_tree ? CallSums::Tree::SMALL
                                    : CallSums::Tree::NONE);
  ErrorTables errors;
  Gathered gathered(query);
  std::vector<tables::calls::StackStates> states(noted ? query.streams.size() : 0);
  std::vector<std::vector<std::uint8_t>> bytes(states.size());
  const Looks looks{.all_groups = true, .noted = noted ? &states : nullptr};
  read_streams(query, into(query, sums.of_streams(), looks), [&](std::size_t index, StreamCalls& calls) {
    errors.add(calls);
    sums.end_stream(index, calls);
    if (noted) bytes[index] = states[index].to_bytes(calls.functions(), calls.groups());
    gathered.report(sums.bytes());
  });
  py::list found;
  for (const std::vector<std::uint8_t>& one : bytes)
    found.append(py::array_t<std::uint8_t>(static_cast<py::ssize_t>(one.size()), one.data()));
  return errors.take(py::make_tuple(sums.to_python(), found));
}

using Ticks = py::array_t<std::uint64_t, py::array::c_style>;

std::span<const std::uint64_t> span_of(const Ticks& ticks) {
  return {ticks.data(), static_cast<std::size_t>(ticks.size())};
}

// Rows of `at_times` of each stream, one stream after the other. `probes`: of each stream.
template <typename Probe, typename Rows>
py::tuple read_moments(const CallQuery& query, const std::vector<std::unique_ptr<Probe>>& probes,
                       bool all_branches, const Rows& rows) {
  std::unique_ptr<tables::columns::Batch> all;
  std::uint64_t first_id = 0;
  const auto open = [&](std::size_t index) {
    return query.open(index, query.threads_of(index), *probes[index],
                      {.probe = probes[index].get(), .all_branches = all_branches});
  };
  read_streams(query, open, [&](std::size_t index, const StreamCalls&) {
    append(all, rows(*probes[index], query.streams[index], first_id));
    first_id += probes[index]->frames();
  });
  if (all == nullptr)
    all = std::make_unique<tables::columns::Batch>(tables::columns::TableId::at_times,
                                                   tables::columns::kAllColumns);
  all->shrink();
  return batch_to_python(std::move(all));
}

// Frames at the top at positions of each stream: instructions and stream offsets before them.
py::tuple read_frames_at(const CallQuery& query, const std::vector<std::pair<Ticks, Ticks>>& positions) {
  std::vector<std::unique_ptr<tables::calls::PositionProbe>> probes;
  for (const auto& [instructions, offsets] : positions) {
    std::vector<tables::calls::PositionProbe::Position> asked;
    for (py::ssize_t i = 0; i < instructions.size(); ++i)
      asked.push_back({instructions.at(i), offsets.at(i)});
    probes.push_back(std::make_unique<tables::calls::PositionProbe>(std::move(asked)));
  }
  return read_moments(query, probes, false,
                      [](const tables::calls::PositionProbe& probe, std::uint32_t, std::uint64_t first_id) {
                        return probe.rows(first_id);
                      });
}

// Frames that are open at times in [least, most], which ascend.
py::tuple read_times(const CallQuery& query, const Ticks& least, const Ticks& most) {
  std::vector<std::unique_ptr<tables::calls::TimeProbe>> probes;
  for (std::size_t i = 0; i < query.streams.size(); ++i)
    probes.push_back(std::make_unique<tables::calls::TimeProbe>(span_of(least), span_of(most)));
  return read_moments(query, probes, true,
                      [](const tables::calls::TimeProbe& probe, std::uint32_t stream,
                         std::uint64_t first_id) { return probe.rows(stream, first_id); });
}

bool names_python(const CallQuery& query) {
  return std::ranges::any_of(query.session->bundle->files, [](const trace::ImageFile& file) {
    return std::ranges::any_of(file.symbols, code::symbol::is_python_name, &trace::SymbolEntry::name);
  });
}

// Frames in the order in which they end, in parts.
struct CallReader {
  std::shared_ptr<CallQuery> query;
  tables::calls::FrameList frames;
  std::unique_ptr<StreamCalls> calls;
  ErrorTables errors;
  std::size_t next = 0;
  std::atomic<bool> busy{false};

  CallReader(std::shared_ptr<CallQuery> of, const std::vector<std::string>& names)
      : query(std::move(of)), frames(query->frames, mask_of(tables::columns::TableId::calls, names)) {}
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
      calls = query->open(next++, query->threads, frames, {});
    }
    const auto step = calls->step();
    if (step != StreamCalls::Step::MORE && step != StreamCalls::Step::END) throw std::bad_alloc();
    if (frames.out_of_memory()) throw std::bad_alloc();
    if (step == StreamCalls::Step::MORE) return true;
    errors.add(*calls);
    calls.reset();
    return true;
  }
};

// ((rows, columns, runs), errors, gaps): up to `rows` rows; fewer only at the end.
py::tuple read_part(CallReader& self, std::size_t rows) {
  const ExclusiveUse use(self.busy, kReaderInUse);
  std::unique_ptr<tables::columns::Batch> part;
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
    if (self.calls != nullptr) self.errors.add(*self.calls);
  }
  check_signals();
  self.query->rethrow();
  if (part == nullptr) throw std::bad_alloc();
  return self.errors.take(batch_to_python(std::move(part)));
}

}  // namespace

void register_calls(py::module_& module) {
  py::class_<CallQuery, std::shared_ptr<CallQuery>>(module, "CallQuery", "Which frames of which streams.")
      .def(py::init(&make_query), py::arg("session"), py::kw_only(), py::arg("streams"), py::arg("selection"),
           py::arg("engine"), py::arg("resync"), py::arg("threads"), py::arg("time"),
           py::arg("tails_replaced") = false, py::arg("frames") = "native", py::arg("inlines") = false,
           py::arg("budget") = py::none(), py::arg("window") = py::none(), py::arg("window_by") = "time",
           py::arg("select_sides") = false, py::arg("index") = py::none(),
           py::arg("states") = std::vector<py::buffer>{},
           "`states`: of `sums`, of each stream. Frames of the window are then the same, but errors and gaps "
           "before it may be missing.")
      .def("calls", &read_calls, py::arg("columns"), py::arg("with_sums") = false,
           "All frames by id, the anomalies, and the sums over frames.")
      .def(
          "sums", &read_sums, py::kw_only(), py::arg("tree"), py::arg("kept"), py::arg("noted") = false,
          "Sums over the frames, by all that they are summed up by, and the call stacks at segments' begins.")
      .def("frames_at", &read_frames_at, py::arg("positions"),
           "Frames at the top at positions of each stream.")
      .def("moments", &read_times, py::arg("least"), py::arg("most"), "What each stream did at times.")
      .def_property_readonly(
          "refused_bytes",
          [](const CallQuery& self) { return self.budget ? self.budget->refused_bytes() : 0; },
          "What frames took when they were found not to fit; 0: they fit.")
      .def("names_python", &names_python, "Whether the recording has names of Python functions.");
  py::class_<CallReader>(module, "CallReader", "Frames in the order in which they end, in parts.")
      .def(py::init<std::shared_ptr<CallQuery>, const std::vector<std::string>&>(), py::arg("query"),
           py::kw_only(), py::arg("columns"))
      .def("read", &read_part, py::arg("rows"));
}

}  // namespace ptkit::api::python
