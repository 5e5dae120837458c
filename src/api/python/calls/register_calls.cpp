// Call stacks: frames as tables, and sums over functions. Reads without the GIL.
#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "api/python/bindings.h"
#include "api/python/calls/call_query.h"
#include "api/python/calls/stream_sums.h"
#include "api/python/long_calls.h"
#include "api/python/reader_input.h"
#include "code/symbol/names/python_name.h"
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

// ((calls, anomalies, notes, sums or None), errors, gaps). `with_sums`: what read_sums() gives, too.
py::tuple read_calls(const CallQuery& query, const std::vector<std::string>& names, bool with_sums) {
  std::vector<std::unique_ptr<tables::calls::FrameTable>> tables;
  std::vector<std::unique_ptr<tables::calls::TwoSinks>> sinks;
  const auto mask = mask_of(tables::columns::TableId::calls, names);
  StreamSums sums(query, with_sums ? CallSums::Tree::SMALL : CallSums::Tree::NONE);
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
  read_streams<StreamCalls>(query, open, [&](std::size_t index, StreamCalls& calls) {
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
                                    with_sums ? py::object(sums.to_python()) : py::none()));
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
  read_streams<StreamCalls>(query, into(query, sums.of_streams(), looks),
                            [&](std::size_t index, StreamCalls& calls) {
                              errors.add(calls);
                              sums.end_stream(index, calls);
                              if (noted)
                                bytes[index] = states[index].to_bytes(calls.functions(), calls.groups());
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
  read_streams<StreamCalls>(query, open, [&](std::size_t index, const StreamCalls&) {
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
  register_call_query(module)
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
