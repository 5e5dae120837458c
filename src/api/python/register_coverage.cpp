// The coverage decoder for fuzzers: decodes streams into maps and arrays that Python owns.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include "api/python/bindings.h"
#include "api/python/long_calls.h"
#include "packet/errata.h"
#include "tables/coverage/coverage.h"
#include "trace/rtit_ctl.h"

namespace ptkit::api::python {
namespace {

constexpr const char* kDecoderInUse = "another thread uses this decoder";

using tables::columns::Column;
using tables::coverage::copy_edges;
using tables::coverage::CoverageDecoder;
using tables::coverage::Outcome;
using Clock = std::chrono::steady_clock;

struct Coverage {
  std::shared_ptr<CodeCallback> callback;  // may be null
  trace::Configuration configuration;
  std::size_t map_size = 0;
  std::unique_ptr<CoverageDecoder> decoder;
  std::atomic<bool> busy{false};
};

// The code of a session with another configuration. A raw buffer has no clock.
std::shared_ptr<const trace::TraceBundle> code_of(const Session& session,
                                                  const trace::Configuration& configuration) {
  const trace::TraceBundle& from = *session.bundle;
  const bool timed = std::any_of(from.code.begin(), from.code.end(), [](const trace::CodeRegion& region) {
    return region.tsc_from != trace::kTscMin || region.tsc_to != trace::kTscMax;
  });
  if (timed) {
    raise_failure({base::Status::UNSUPPORTED, 0,
                   from.source +
                       ": its code changes with time, and a buffer alone has none; give images=[...] "
                       "as they are when the buffers are recorded"});
  }
  auto bundle = std::make_shared<trace::TraceBundle>();
  bundle->configuration = configuration;
  bundle->spaces = from.spaces;
  bundle->files = from.files;
  bundle->code = from.code;
  return bundle;
}

std::unique_ptr<Coverage> make_coverage(const Session& session, std::size_t map_size,
                                        const std::string& resync, const std::optional<Ranges>& ranges,
                                        std::optional<std::uint64_t> rtit_ctl, bool sync,
                                        trace::SpaceId space) {
  auto coverage = std::make_unique<Coverage>();
  coverage->callback = session.callback;
  coverage->map_size = map_size;
  coverage->configuration = session.bundle->configuration;
  if (ranges) set_ranges(coverage->configuration, *ranges);
  if (rtit_ctl) trace::set_rtit_ctl(coverage->configuration, *rtit_ctl);
  coverage->configuration.sync = coverage->configuration.sync && sync;
  flow::FlowOptions options;
  options.resync = resync == "psb" ? flow::Resync::PSB : flow::Resync::IP;
  options.errata = packet::errata_for(coverage->configuration.cpu);
  coverage->decoder = std::make_unique<CoverageDecoder>(code_of(session, coverage->configuration), options,
                                                        session.image->callback());
  coverage->decoder->set_space(space);
  return coverage;
}

// Writable memory that Python owns.
std::span<std::uint8_t> map_from_python(const py::object& map, std::size_t size, const char* what,
                                        std::optional<py::buffer_info>& view) {
  if (map.is_none()) return {};
  const auto refuse = [what](const std::string& found) {
    throw py::type_error(std::string(what) + " must be a contiguous writable array of uint8, not " + found);
  };
  if (!PyObject_CheckBuffer(map.ptr())) refuse(Py_TYPE(map.ptr())->tp_name);
  view.emplace(py::reinterpret_borrow<py::buffer>(map).request());
  if (view->readonly) refuse("one that is read-only");
  if (view->itemsize != 1 || view->format == "?" || view->format == "b")
    refuse("items of format '" + view->format + "'; make it with dtype=numpy.uint8");
  if (view->ndim != 1 || (view->size > 1 && view->strides[0] != 1))
    refuse("an array of another shape; give array.ravel()");
  if (static_cast<std::size_t>(view->size) != size) {
    raise_failure({base::Status::BAD_CONFIG, 0,
                   std::string(what) + " has " + std::to_string(view->size) + " bytes; map_size is " +
                       std::to_string(size)});
  }
  return {static_cast<std::uint8_t*>(view->ptr), size};
}

// A stream, or the chunks of a ring.
std::vector<trace::TraceBuffer> chunks_from_python(const py::object& given) {
  if (!py::isinstance<py::list>(given) && !py::isinstance<py::tuple>(given))
    return {buffer_from_python(given, "buffer")};
  std::vector<trace::TraceBuffer> chunks;
  for (const py::handle chunk : given) {
    chunks.push_back(buffer_from_python(py::reinterpret_borrow<py::object>(chunk),
                                        "each item of a list of chunks (of a ring, the oldest first)"));
  }
  return chunks;
}

Outcome decode(Coverage& self, const py::object& buffer, const py::object& bitmap, const py::object& virgin,
               bool clear) {
  const auto owners = chunks_from_python(buffer);
  std::vector<base::Bytes> chunks;
  for (const trace::TraceBuffer& owner : owners) chunks.push_back(owner.bytes());
  std::optional<py::buffer_info> hits_view;
  std::optional<py::buffer_info> virgin_view;
  tables::coverage::Maps maps;
  maps.hits = map_from_python(bitmap, self.map_size, "bitmap", hits_view);
  maps.virgin = map_from_python(virgin, self.map_size, "virgin", virgin_view);
  maps.clear = clear;
  const ExclusiveUse use(self.busy, kDecoderInUse);
  auto result = [&] {
    const py::gil_scoped_release release;
    auto last = Clock::now();
    return self.decoder->decode(self.decoder->join(chunks), maps, [&] {
      if (Clock::now() - last < kSignalPeriod) return true;
      const py::gil_scoped_acquire gil;
      last = Clock::now();
      return PyErr_CheckSignals() == 0;
    });
  }();
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (self.callback != nullptr) self.callback->rethrow();
  return value_or_raise(std::move(result));
}

std::unique_ptr<tables::columns::Batch> batch_of(tables::columns::TableId table, std::size_t rows) {
  auto batch = std::make_unique<tables::columns::Batch>(table, tables::columns::kAllColumns);
  batch->begin_run({});
  if (!batch->reserve(rows)) throw std::bad_alloc();
  return batch;
}

// The edges that a member function of the decoder lists.
py::tuple edges(Coverage& self,
                std::span<const tables::coverage::Edge> (CoverageDecoder::*list)() const noexcept) {
  const ExclusiveUse use(self.busy, kDecoderInUse);
  self.decoder->sort_edges();
  const auto all = (*self.decoder.*list)();
  auto batch = batch_of(tables::columns::TableId::edges, all.size());
  copy_edges(all, {{batch->cells<Column::edges_from_ip>(), all.size()},
                   {batch->cells<Column::edges_to_ip>(), all.size()},
                   {batch->cells<Column::edges_kind>(), all.size()},
                   {batch->counts<Column::edges_count>(), all.size()}});
  for (std::size_t row = 0; row < all.size(); ++row) {
    batch->put<Column::edges_space>(row, all[row].space);
    batch->put<Column::edges_flags>(row, std::uint8_t{flow::TO_KNOWN});
  }
  batch->add_rows(all.size());
  return batch_to_python(std::move(batch));
}

// The memory of an array; empty without an array.
template <typename T>
std::span<T> cells_of(const py::object& given, const char* what) {
  if (given.is_none()) return {};
  if (!py::isinstance<py::array_t<T>>(given)) {
    throw py::type_error(std::string(what) + " must be a contiguous writable array of " +
                         std::string(py::str(py::dtype::of<T>())) + ", not " +
                         std::string(py::str(py::type::of(given).attr("__name__"))));
  }
  auto array = py::reinterpret_borrow<py::array>(given);
  if (array.ndim() != 1 || !array.writeable() || (array.flags() & py::array::c_style) == 0)
    throw py::type_error(std::string(what) + " must be one-dimensional, contiguous and writable");
  return {static_cast<T*>(array.mutable_data()), static_cast<std::size_t>(array.size())};
}

std::size_t edges_into(Coverage& self, const py::object& from_ip, const py::object& to_ip,
                       const py::object& kind, const py::object& count) {
  const ExclusiveUse use(self.busy, kDecoderInUse);
  const auto counts = cells_of<std::int64_t>(count, "count");
  copy_edges(self.decoder->edges(), {cells_of<std::uint64_t>(from_ip, "from_ip"),
                                     cells_of<std::uint64_t>(to_ip, "to_ip"),
                                     cells_of<std::uint8_t>(kind, "kind"),
                                     {reinterpret_cast<std::uint64_t*>(counts.data()), counts.size()}});
  return self.decoder->edges().size();
}

// Rows have no times, so the flag "time known" is never set.
py::tuple errors(Coverage& self) {
  const ExclusiveUse use(self.busy, kDecoderInUse);
  const auto all = self.decoder->errors();
  auto batch = batch_of(tables::columns::TableId::errors, all.size());
  for (std::size_t row = 0; row < all.size(); ++row) {
    const flow::FlowError& error = all[row].error;
    const int flags = (error.ip_known ? tables::columns::ERROR_IP_KNOWN : 0) |
                      (error.file >= 0 ? tables::columns::ERROR_FILE_KNOWN : 0);
    batch->put<Column::errors_code>(row, static_cast<std::uint8_t>(error.code));
    batch->put<Column::errors_offset>(row, error.span.offset);
    batch->put<Column::errors_ip>(row, error.ip);
    batch->put<Column::errors_flags>(row, static_cast<std::uint8_t>(flags));
    batch->put<Column::errors_argument>(row, error.argument);
    batch->put<Column::errors_argument2>(row, error.argument2);
    batch->put<Column::errors_file>(row, std::max(error.file, 0));
    batch->put<Column::errors_tsc>(row, 0);
    batch->put<Column::errors_tsc_error>(row, 0);
    batch->put<Column::errors_tsc_source>(row, 0);
    batch->put<Column::errors_instruction>(row, all[row].instruction);
    batch->put<Column::errors_order>(row, all[row].order);
  }
  batch->add_rows(all.size());
  return batch_to_python(std::move(batch));
}

py::tuple gaps(Coverage& self) {
  const ExclusiveUse use(self.busy, kDecoderInUse);
  const auto all = self.decoder->gaps();
  auto batch = batch_of(tables::columns::TableId::gaps, all.size());
  for (std::size_t row = 0; row < all.size(); ++row) {
    const flow::Gap& gap = all[row].gap;
    batch->put<Column::gaps_cause>(row, static_cast<std::uint8_t>(gap.cause));
    batch->put<Column::gaps_code>(row, static_cast<std::uint8_t>(gap.code));
    batch->put<Column::gaps_begin>(row, gap.begin);
    batch->put<Column::gaps_end>(row, gap.end);
    batch->put<Column::gaps_from_ip>(row, gap.from_ip);
    batch->put<Column::gaps_to_ip>(row, gap.to_ip);
    batch->put<Column::gaps_lost_bytes>(row, 0);
    batch->put<Column::gaps_flags>(row, gap.flags);
    batch->put<Column::gaps_tsc>(row, 0);
    batch->put<Column::gaps_tsc_error>(row, 0);
    batch->put<Column::gaps_tsc_source>(row, 0);
    batch->put<Column::gaps_instruction>(row, all[row].instruction);
    batch->put<Column::gaps_order>(row, all[row].order);
  }
  batch->add_rows(all.size());
  return batch_to_python(std::move(batch));
}

std::string show(const Outcome& self) {
  return "CoverageResult(bytes=" + std::to_string(self.bytes) +
         ", instructions=" + std::to_string(self.instructions) +
         ", branches=" + std::to_string(self.branches) + ", edges=" + std::to_string(self.edges) +
         ", new_edges=" + std::to_string(self.new_edges) + ", errors=" + std::to_string(self.errors) +
         ", gaps=" + std::to_string(self.gaps) + ", new_bits=" + std::to_string(static_cast<int>(self.news)) +
         ")";
}

}  // namespace

void register_coverage(py::module_& module) {
  py::class_<Outcome>(module, "CoverageResult", "What one buffer gave: see `CoverageDecoder.decode`.")
      .def_readonly("bytes", &Outcome::bytes, "int: size of the buffer.")
      .def_readonly("instructions", &Outcome::instructions, "int: instructions that were executed.")
      .def_readonly("branches", &Outcome::branches, "int: branches with both ends known; sum of all counts.")
      .def_readonly("edges", &Outcome::edges, "int: different edges.")
      .def_readonly("new_edges", &Outcome::new_edges, "int: rows of `CoverageDecoder.new_edges`.")
      .def_readonly("errors", &Outcome::errors, "int: rows of `CoverageDecoder.errors`.")
      .def_readonly("gaps", &Outcome::gaps, "int: rows of `CoverageDecoder.gaps`.")
      .def_property_readonly(
          "new_bits", [](const Outcome& self) { return static_cast<int>(self.news); },
          "int: 2, a byte of the map was hit for the first time; 1, a number of hits was new; 0, neither.")
      .def("__repr__", &show);
  py::class_<Coverage>(module, "Coverage", "Edges of one buffer after another.")
      .def(py::init(&make_coverage), py::arg("session"), py::kw_only(), py::arg("map_size"),
           py::arg("resync"), py::arg("ranges") = py::none(), py::arg("rtit_ctl") = py::none(),
           py::arg("sync") = true, py::arg("space") = trace::kAnySpace)
      .def("decode", &decode, py::arg("buffer"), py::arg("bitmap") = py::none(),
           py::arg("virgin") = py::none(), py::kw_only(), py::arg("clear") = false)
      .def("edges", [](Coverage& self) { return edges(self, &CoverageDecoder::edges); })
      .def("new_edges", [](Coverage& self) { return edges(self, &CoverageDecoder::new_edges); })
      .def("edges_into", &edges_into, py::arg("from_ip") = py::none(), py::arg("to_ip") = py::none(),
           py::arg("kind") = py::none(), py::arg("count") = py::none())
      .def("errors", &errors)
      .def("gaps", &gaps)
      .def(
          "forget",
          [](Coverage& self, std::uint64_t first, std::uint64_t last) {
            const ExclusiveUse use(self.busy, kDecoderInUse);
            self.decoder->forget(first, last);
          },
          py::arg("first"), py::arg("last"))
      .def(
          "set_images",
          [](Coverage& self, const Session& session) {
            const ExclusiveUse use(self.busy, kDecoderInUse);
            self.decoder->set_bundle(code_of(session, self.configuration));
          },
          py::arg("session"));
  module.def("edge_hash", py::vectorize(&tables::coverage::edge_hash), py::arg("from_ip"), py::arg("to_ip"));
}

}  // namespace ptkit::api::python
