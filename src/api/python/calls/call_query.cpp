#include "api/python/calls/call_query.h"

#include <algorithm>
#include <utility>

#include "api/python/reader_input.h"

namespace ptkit::api::python {

using tables::calls::StreamCalls;

StreamCalls::Input CallQuery::input(std::size_t index, std::size_t own_threads, const Looks& looks) const {
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
  return how;
}

std::unique_ptr<StreamCalls> CallQuery::open(std::size_t index, std::size_t own_threads,
                                             tables::calls::FrameSink& sink, const Looks& looks) const {
  StreamCalls::Input how = input(index, own_threads, looks);
  if (!states.empty() && states[index]) {
    StreamCalls::Input from = how;
    from.states = &*states[index];
    auto calls = std::make_unique<StreamCalls>(std::move(from), sink);
    if (calls->good()) return calls;
  }
  return std::make_unique<StreamCalls>(std::move(how), sink);
}

std::size_t CallQuery::threads_of(std::size_t index) const {
  std::uint64_t total = 0;
  for (const auto stream : streams) total += session->bundle->streams[stream].data.size();
  const std::uint64_t own = session->bundle->streams[streams[index]].data.size();
  return own > total / std::max<std::size_t>(threads, 1) ? threads : 1;
}

void CallQuery::rethrow() const {
  if (session->callback != nullptr) session->callback->rethrow();
}

namespace {

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
  query->select_sides = select_sides;
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

}  // namespace

py::class_<CallQuery, std::shared_ptr<CallQuery>> register_call_query(py::module_& module) {
  return py::class_<CallQuery, std::shared_ptr<CallQuery>>(module, "CallQuery",
                                                           "Which frames of which streams.")
      .def(py::init(&make_query), py::arg("session"), py::kw_only(), py::arg("streams"), py::arg("selection"),
           py::arg("engine"), py::arg("resync"), py::arg("threads"), py::arg("time"),
           py::arg("tails_replaced") = false, py::arg("frames") = "native", py::arg("inlines") = false,
           py::arg("budget") = py::none(), py::arg("window") = py::none(), py::arg("window_by") = "time",
           py::arg("select_sides") = false, py::arg("index") = py::none(),
           py::arg("states") = std::vector<py::buffer>{},
           "`states`: of `sums`, of each stream. Frames of the window are then the same, but errors and gaps "
           "before it may be missing.");
}

void append(std::unique_ptr<tables::columns::Batch>& all, std::unique_ptr<tables::columns::Batch> more) {
  if (more == nullptr) throw std::bad_alloc();
  if (all == nullptr) {
    all = std::move(more);
  } else if (!all->append(std::move(*more))) {
    throw std::bad_alloc();
  }
}

py::tuple to_python(std::unique_ptr<tables::columns::Batch>& batch, tables::columns::TableId table,
                    tables::columns::ColumnMask mask) {
  if (batch == nullptr) batch = std::make_unique<tables::columns::Batch>(table, mask);
  batch->shrink();
  return batch_to_python(std::move(batch));
}

}  // namespace ptkit::api::python
