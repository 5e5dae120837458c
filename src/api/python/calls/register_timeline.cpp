// Timelines of calls: slices as columns, in parts. Reads without the GIL.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "api/python/calls/call_query.h"
#include "api/python/calls/stream_sums.h"
#include "api/python/calls/timeline_handle.h"
#include "api/python/long_calls.h"
#include "tables/calls/frame_index.h"
#include "tables/calls/timeline/slice_sink.h"

namespace ptkit::api::python {
namespace {

using tables::calls::CallSums;
using tables::calls::FrameTimeline;
using tables::calls::Slice;
using tables::calls::SliceSink;
using tables::calls::StreamCalls;
using tables::calls::TimelineAxis;
using tables::calls::TwoSinks;

// ((timeline, notes, sums or None), errors, gaps). `most`: slices; 0: the timeline is whole. `with_sums`:
// what CallQuery.sums() gives, too.
py::tuple read_timeline(const CallQuery& query, const std::string& by, std::size_t most, bool with_sums) {
  const TimelineAxis axis = by == "time" ? TimelineAxis::TIME : TimelineAxis::INSTRUCTIONS;
  std::vector<std::unique_ptr<SliceSink>> sinks;
  std::vector<std::unique_ptr<TwoSinks>> both;
  StreamSums sums(query, CallSums::Tree::NONE);
  for (std::size_t i = 0; i < query.streams.size(); ++i) {
    sinks.push_back(std::make_unique<SliceSink>(axis, query.frames, most));
    both.push_back(std::make_unique<TwoSinks>(*sinks[i], *sums.of_streams()[i]));
  }
  auto timeline = std::make_unique<FrameTimeline>(axis, most);
  const auto notes = std::make_shared<tables::calls::FrameIndex>();
  ErrorTables errors;
  Gathered gathered(query);
  const auto open = with_sums ? into(query, both, {.all_groups = true}) : into(query, sinks);
  read_streams<StreamCalls>(query, open, [&](std::size_t index, StreamCalls& calls) {
    errors.add(calls);
    if (with_sums) sums.end_stream(index, calls);
    SliceSink& sink = *sinks[index];
    timeline->add(sink, query.streams[index], notes->frames(), calls.functions(), notes->functions());
    notes->append({}, sink.ids());
    sinks[index].reset();
    gathered.report(timeline->bytes() + notes->bytes() + sums.bytes());
  });
  {
    const py::gil_scoped_release release;
    timeline->finish(SignalWatch());
  }
  check_signals();
  const auto handle = std::make_shared<TimelineHandle>(std::move(timeline));
  return errors.take(py::make_tuple(handle, notes, with_sums ? py::object(sums.to_python()) : py::none()));
}

// An array that owns the vector's memory.
template <typename T>
py::array to_array(std::vector<T>&& values) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  std::vector<T>* const vector = owned.get();
  const py::capsule owner(owned.release(), [](void* p) { delete static_cast<std::vector<T>*>(p); });
  py::array_t<T> array(static_cast<py::ssize_t>(vector->size()), vector->data(), owner);
  array.attr("flags").attr("writeable") = false;
  return array;
}

// Columns of slices.
struct SliceColumns {
  std::vector<std::uint64_t> begin, end, id, covered, instructions, branches;
  std::vector<std::uint32_t> track, depth, begin_error, end_error, function, calls;
  std::vector<std::uint16_t> flags;
  std::vector<std::uint8_t> how, end_how, has_loss;

  // Calls `visit` with each column, and with its name.
  template <typename Self, typename Visit>
  static void for_each(Self& self, const Visit& visit) {
    visit("track", self.track);
    visit("depth", self.depth);
    visit("begin", self.begin);
    visit("end", self.end);
    visit("begin_error", self.begin_error);
    visit("end_error", self.end_error);
    visit("id", self.id);
    visit("function", self.function);
    visit("calls", self.calls);
    visit("covered", self.covered);
    visit("instructions", self.instructions);
    visit("branches", self.branches);
    visit("how", self.how);
    visit("end_how", self.end_how);
    visit("flags", self.flags);
    visit("has_loss", self.has_loss);
  }
  void add(const Slice& slice, std::size_t of_track, std::uint32_t at_depth) {
    track.push_back(static_cast<std::uint32_t>(of_track));
    depth.push_back(at_depth);
    begin.push_back(slice.begin);
    end.push_back(slice.end);
    begin_error.push_back(slice.begin_error);
    end_error.push_back(slice.end_error);
    id.push_back(slice.id);
    function.push_back(slice.function);
    calls.push_back(slice.calls);
    covered.push_back(slice.covered);
    instructions.push_back(slice.instructions);
    branches.push_back(slice.branches);
    how.push_back(static_cast<std::uint8_t>(slice.how));
    end_how.push_back(static_cast<std::uint8_t>(slice.end_how));
    flags.push_back(slice.flags);
    has_loss.push_back(slice.has_loss ? 1 : 0);
  }
};

void check_tracks(const FrameTimeline& timeline, std::size_t first, std::size_t last) {
  if (first > last || last > timeline.tracks().size())
    throw py::index_error("tracks: the timeline has " + std::to_string(timeline.tracks().size()));
}

// Slices of the tracks [first, last) in the order of the timeline.
class TimelineReader {
 public:
  TimelineReader(std::shared_ptr<TimelineHandle> of, std::size_t first, std::size_t last)
      : of_(std::move(of)), reductions_(of_->reductions), track_(first), last_(last) {
    check_tracks(*of_->timeline, first, last);
  }

  // Up to `rows` rows; fewer only at the end.
  [[nodiscard]] py::dict read(std::size_t rows) {
    SliceColumns columns;
    {
      const ExclusiveUse use(of_->busy, kTimelineInUse);
      if (reductions_ != of_->reductions)
        throw std::runtime_error("the timeline was reduced: make a new reader");
      const py::gil_scoped_release release;
      SliceColumns::for_each(columns, [&](const char*, auto& column) {
        column.reserve(std::min(rows, of_->timeline->slices(0, of_->timeline->tracks().size())));
      });
      while (columns.id.size() < rows && next()) columns.add(walk_->slice(), track_, walk_->depth());
    }
    py::dict found;
    SliceColumns::for_each(columns, [&](const char* name, auto& column) {
      column.shrink_to_fit();
      found[name] = to_array(std::move(column));
    });
    return found;
  }

 private:
  // Goes to the next begin.
  [[nodiscard]] bool next() {
    while (track_ < last_) {
      if (!walk_) walk_.emplace(of_->timeline->walk(track_));
      while (walk_->next()) {
        if (walk_->is_begin()) return true;
      }
      walk_.reset();
      ++track_;
    }
    return false;
  }

  std::shared_ptr<TimelineHandle> of_;
  std::uint64_t reductions_;
  std::size_t track_;
  std::size_t last_;
  std::optional<tables::calls::SliceWalk> walk_;
};

py::dict columns_of(const std::shared_ptr<TimelineHandle>& self, std::size_t first, std::size_t last) {
  TimelineReader reader(self, first, last);
  return reader.read(self->timeline->slices(first, last));
}

[[nodiscard]] py::object id_or_none(std::int64_t id) {
  return id == trace::kNoId ? py::object(py::none()) : py::object(py::int_(id));
}

py::list tracks_of(const TimelineHandle& self) {
  py::list found;
  for (const tables::calls::Track& track : self.timeline->tracks()) {
    found.append(py::make_tuple(id_or_none(track.owner.pid), id_or_none(track.owner.tid),
                                id_or_none(track.owner.cpu), track.owner.space, track.stream, track.stack));
  }
  return found;
}

const tables::calls::Track& track_at(const TimelineHandle& self, std::size_t track) {
  check_tracks(*self.timeline, track, track + 1);
  return self.timeline->tracks()[track];
}

py::tuple bands_of(const TimelineHandle& self, std::size_t track) {
  std::vector<std::uint64_t> begin;
  std::vector<std::uint64_t> end;
  std::vector<std::uint8_t> kind;
  for (const tables::calls::Band& band : track_at(self, track).bands) {
    begin.push_back(band.begin);
    end.push_back(band.end);
    kind.push_back(static_cast<std::uint8_t>(band.kind));
  }
  return py::make_tuple(to_array(std::move(begin)), to_array(std::move(end)), to_array(std::move(kind)));
}

py::tuple counts_of(const TimelineHandle& self, std::size_t track) {
  std::vector<std::uint64_t> position;
  std::vector<std::uint64_t> branches;
  for (const tables::calls::BranchCount& count : track_at(self, track).counts) {
    position.push_back(count.position);
    branches.push_back(count.branches);
  }
  return py::make_tuple(to_array(std::move(position)), to_array(std::move(branches)));
}

void reduce(TimelineHandle& self, std::size_t most) {
  const ExclusiveUse use(self.busy, kTimelineInUse);
  ++self.reductions;
  {
    const py::gil_scoped_release release;
    self.timeline->reduce(most, SignalWatch());
  }
  check_signals();
}

py::dict facts_of(TimelineHandle& self) {
  FrameTimeline::Facts facts;
  {
    const ExclusiveUse use(self.busy, kTimelineInUse);
    const py::gil_scoped_release release;
    facts = self.timeline->facts();
  }
  py::dict found;
  found["is_whole"] = facts.is_whole;
  found["slices"] = facts.slices;
  found["calls"] = facts.calls;
  found["merged_slices"] = facts.merged_slices;
  found["merged_calls"] = facts.merged_calls;
  found["longest_merged"] = facts.longest_merged;
  found["slowest"] = facts.slowest;
  found["deepest"] = facts.deepest;
  found["too_deep"] = facts.too_deep;
  found["without_times"] = facts.without_times;
  found["clamped"] = facts.clamped;
  found["merged_bands"] = facts.merged_bands;
  found["without_counts"] = facts.without_counts;
  return found;
}

}  // namespace

void register_timeline(py::module_& module) {
  py::class_<TimelineHandle, std::shared_ptr<TimelineHandle>>(
      module, "CallTimeline", "Calls of threads as slices that nest, whole or reduced.")
      .def_property_readonly(
          "slices",
          [](const TimelineHandle& self) { return self.timeline->slices(0, self.timeline->tracks().size()); })
      .def_property_readonly("bytes", [](const TimelineHandle& self) { return self.timeline->bytes(); })
      .def("tracks", &tracks_of, "(pid, tid, cpu, space, stream, stack) of each track; None: not known.")
      .def("columns", &columns_of, py::arg("first"), py::arg("last"),
           "Columns of the slices of the tracks [first, last): callers come before what they call.")
      .def("bands", &bands_of, py::arg("track"),
           "Begins, ends and kinds (0: not traced, 1: switched out, 2: lost) of bands.")
      .def("counts", &counts_of, py::arg("track"), "Positions, and branches of the thread before them.")
      .def("reduce", &reduce, py::arg("most"),
           "Reduces to so many slices, if that is possible. Readers end. A signal may end it before.")
      .def("facts", &facts_of, "What was merged, changed and left out.");
  py::class_<TimelineReader>(module, "TimelineReader", "Slices of the tracks [first, last) in parts.")
      .def(py::init<std::shared_ptr<TimelineHandle>, std::size_t, std::size_t>(), py::arg("timeline"),
           py::arg("first"), py::arg("last"))
      .def("read", &TimelineReader::read, py::arg("rows"), "Up to `rows` rows; fewer only at the end.");
  module.def("read_timeline", &read_timeline, py::arg("query"), py::kw_only(), py::arg("by"), py::arg("most"),
             py::arg("with_sums") = false,
             "((timeline, notes of its functions, sums), errors, gaps). `most`: slices; 0: all calls.");
}

}  // namespace ptkit::api::python
