// Builds indexes, saves them in files, and passes them to readers.
#include <atomic>
#include <chrono>
#include <future>

#include "api/python/bindings.h"
#include "api/python/engines.h"
#include "api/python/long_calls.h"
#include "base/check_sum.h"
#include "base/system/new_contents.h"
#include "flow/index/builder.h"
#include "tables/calls/sums/call_sums.h"

namespace ptkit::api::python {
namespace {

using flow::index::Index;

flow::FlowOptions options_of(const Session& session, const std::string& resync) {
  flow::FlowOptions options;
  options.resync = resync == "psb" ? flow::Resync::PSB : flow::Resync::IP;
  options.errata = packet::errata_for(session.bundle->configuration.cpu);
  return options;
}

std::vector<std::uint8_t> build_bytes(const std::shared_ptr<Session>& session,
                                      const flow::FlowOptions& options, std::size_t threads,
                                      std::size_t segment, const flow::index::Stamp& stamp,
                                      const std::atomic<bool>& cancelled) {
  const trace::TraceBundle& bundle = *session->bundle;
  const auto decoder = make_decoder_factory("ptkit", session, options);
  std::vector<flow::index::BuiltStream> streams;
  for (std::uint32_t i = 0; i < bundle.streams.size(); ++i) {
    flow::MakeDecoder make;
    // Streams of branch records have no checkpoints.
    if (decoder && bundle.streams[i].kind == trace::StreamKind::PROCESSOR_TRACE) {
      make = [&decoder, &stream = bundle.streams[i]](flow::FlowSink& sink, time::TimeTrack* track,
                                                     const flow::FlowState* from, bool speculative) {
        return decoder(stream, sink, track, from, speculative);
      };
    }
    flow::index::StreamBuilder builder({bundle, bundle.streams[i], options.errata, std::move(make), segment,
                                        threads, cancelled, session->decoded.get()});
    auto built = builder.build();
    if (!built) return {};
    streams.push_back(std::move(*built));
  }
  return flow::index::to_bytes(std::move(streams), flow::index::identity_of(bundle, options.resync), stamp);
}

// Builds on another thread, as this one checks for signals.
std::shared_ptr<IndexHandle> build(std::shared_ptr<Session> session, const std::string& resync,
                                   std::size_t threads, std::size_t segment, const std::string& trace) {
  if (session->callback != nullptr) throw py::value_error("code of a callback may change: it has no index");
  const auto options = options_of(*session, resync);
  const flow::index::Stamp stamp = flow::index::stamp_of(trace);
  for (const trace::Stream& stream : session->bundle->streams) prepare_stream(stream);
  std::atomic<bool> cancelled{false};
  auto work = std::async(std::launch::async,
                         [&] { return build_bytes(session, options, threads, segment, stamp, cancelled); });
  for (bool ready = false; !ready;) {
    {
      const py::gil_scoped_release release;
      ready = work.wait_for(kSignalPeriod) == std::future_status::ready;
    }
    if (PyErr_CheckSignals() == 0) continue;
    cancelled = true;
    const py::gil_scoped_release release;
    work.wait();
    ready = true;
  }
  if (cancelled) throw py::error_already_set();
  auto handle = std::make_shared<IndexHandle>();
  handle->bytes = trace::TraceBuffer::from_vector(work.get());
  handle->index = value_or_raise(Index::read(handle->bytes, *session->bundle, options.resync, stamp));
  return handle;
}

// Loads the index file next to a trace. Throws FormatError with the reason if the index does not fit.
std::shared_ptr<IndexHandle> open(const std::string& path, const Session& session, const std::string& resync,
                                  const std::string& trace) {
  if (session.callback != nullptr) throw py::value_error("code of a callback may change: it has no index");
  auto handle = std::make_shared<IndexHandle>();
  handle->bytes = value_or_raise(trace::TraceBuffer::map_file(path));
  const py::gil_scoped_release release;
  auto read = Index::read(handle->bytes, *session.bundle, options_of(session, resync).resync,
                          flow::index::stamp_of(trace));
  const py::gil_scoped_acquire gil;
  handle->index = value_or_raise(std::move(read));
  return handle;
}

// Hash of versions that sums over frames depend on, besides those that an index depends on.
std::uint64_t sums_identity(const Session& session) {
  const py::gil_scoped_release nogil;
  return base::mix(tables::calls::kSumsVersion, session.recorded_symbols->identity());
}

// The index with sums. It has none yet.
std::shared_ptr<IndexHandle> with_sums(const IndexHandle& self, const Session& session,
                                       const std::string& resync, const std::string& trace,
                                       const py::buffer& sums) {
  auto handle = std::make_shared<IndexHandle>();
  const trace::TraceBuffer added = buffer_from_python(sums, "sums");
  handle->bytes = trace::TraceBuffer::from_vector(flow::index::with_sums(self.bytes.bytes(), added.bytes()));
  handle->index = value_or_raise(Index::read(
      handle->bytes, *session.bundle, options_of(session, resync).resync, flow::index::stamp_of(trace)));
  return handle;
}

py::array_t<std::uint8_t> sums(const std::shared_ptr<IndexHandle>& self) {
  const base::Bytes bytes = self->index->sums();
  py::array_t<std::uint8_t> array(static_cast<py::ssize_t>(bytes.size()), bytes.data(), py::cast(self));
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

void save(const IndexHandle& self, const std::string& path) {
  if (const auto failure = base::write_new_file(path, self.bytes.bytes())) raise_failure(*failure);
}

py::list segments(const IndexHandle& self, std::size_t stream) {
  py::list rows;
  if (stream >= self.index->streams().size()) throw py::index_error("no such stream");
  for (const flow::index::Segment& segment : self.index->streams()[stream].segments) {
    const bool ip = (segment.flags & flow::index::Segment::IP_KNOWN) != 0;
    const bool times = (segment.flags & flow::index::Segment::TIMES_KNOWN) != 0;
    py::dict row;
    row["offset"] = segment.begin;
    row["ip"] = ip ? py::object(py::int_(segment.ip)) : py::object(py::none());
    row["time"] =
        times ? py::object(py::make_tuple(segment.tsc_least, segment.tsc_most)) : py::object(py::none());
    row["pid"] = segment.pid;
    row["tid"] = segment.tid;
    row["space"] = segment.space;
    row["instructions"] = segment.instructions;
    row["blocks"] = segment.blocks;
    row["order"] = segment.order;
    row["troubles"] = segment.troubles;
    row["begins_times"] = segment.blob.time != 0;
    rows.append(row);
  }
  return rows;
}

}  // namespace

void register_index(py::module_& module) {
  py::class_<IndexHandle, std::shared_ptr<IndexHandle>>(module, "Index", "Where parts of a trace begin.")
      .def_static("build", &build, py::arg("session"), py::kw_only(), py::arg("resync"), py::arg("threads"),
                  py::arg("segment"), py::arg("trace"))
      .def_static("open", &open, py::arg("path"), py::arg("session"), py::kw_only(), py::arg("resync"),
                  py::arg("trace"))
      .def("with_sums", &with_sums, py::arg("session"), py::kw_only(), py::arg("resync"), py::arg("trace"),
           py::arg("sums"), "The same index with these bytes.")
      .def("sums", &sums, "What `with_sums` was given; empty: there is none, or it is damaged.")
      .def("save", &save, py::arg("path"))
      .def("segments", &segments, py::arg("stream"))
      .def_property_readonly("size", [](const IndexHandle& self) { return self.bytes.size(); })
      .def_property_readonly("streams", [](const IndexHandle& self) { return self.index->streams().size(); });
  module.def(
      "sums_identity", &sums_identity, py::arg("session"),
      "A number that differs where call stacks of the same rows may: by names, and by our own version.");
}

}  // namespace ptkit::api::python
