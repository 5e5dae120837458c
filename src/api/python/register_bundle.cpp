// Builds a TraceBundle from Python: streams and code from buffers and files, and settings.
#include <algorithm>

#include "api/python/bindings.h"
#include "api/python/text.h"
#include "code/image/files/code_file.h"
#include "code/image/pe/pe.h"
#include "formats/common/bts_buffer.h"
#include "formats/common/missing_files.h"
#include "formats/common/stream_ring.h"
#include "trace/branch_records.h"
#include "trace/page_dumps.h"
#include "trace/rtit_ctl.h"

namespace ptkit::api::python {
namespace {

using trace::TraceBundle;

py::object id_or_none(std::int64_t id) {
  return id == trace::kNoId ? py::object(py::none()) : py::object(py::int_(id));
}

std::int64_t id_of(const std::optional<std::int64_t>& id) { return id.value_or(trace::kNoId); }

const char* kind_name(trace::StreamKind kind) {
  return kind == trace::StreamKind::BRANCH_RECORDS ? "branch records" : "packets";
}

trace::StreamKind kind_of(const std::string& name) {
  for (const auto kind : {trace::StreamKind::PROCESSOR_TRACE, trace::StreamKind::BRANCH_RECORDS}) {
    if (name == kind_name(kind)) return kind;
  }
  throw py::value_error("kind is \"packets\" or \"branch records\"");
}

// (position, pid, tid, space): the thread is switched in at a time in TSC ticks, or at an offset in the
// stream.
using SwitchRow =
    std::tuple<std::uint64_t, std::optional<std::int64_t>, std::optional<std::int64_t>, trace::SpaceId>;

std::size_t add_stream(BundleHandle& self, const py::buffer& data, const std::string& name,
                       std::optional<std::int64_t> cpu, std::optional<std::int64_t> pid,
                       std::optional<std::int64_t> tid, trace::SpaceId space,
                       const std::vector<SwitchRow>& switches, bool by_offset, const std::string& kind) {
  trace::Stream stream;
  stream.kind = kind_of(kind);
  stream.name = name;
  stream.cpu = id_of(cpu);
  stream.pid = id_of(pid);
  stream.tid = id_of(tid);
  stream.space = space;
  stream.data = buffer_from_python(data, "a trace stream");
  stream.switches_by_offset = by_offset;
  for (const auto& [position, now_pid, now_tid, now_space] : switches) {
    stream.switches.push_back({.tsc = by_offset ? 0 : position,
                               .pid = id_of(now_pid),
                               .tid = id_of(now_tid),
                               .space = now_space,
                               .offset = by_offset ? position : 0});
  }
  self.bundle->streams.push_back(std::move(stream));
  return self.bundle->streams.size() - 1;
}

std::size_t add_stream_file(BundleHandle& self, const std::string& path, std::optional<std::int64_t> cpu,
                            std::optional<std::int64_t> pid, trace::SpaceId space) {
  trace::Stream stream;
  stream.name = path;
  stream.cpu = id_of(cpu);
  stream.pid = id_of(pid);
  stream.space = space;
  stream.data = value_or_raise(trace::TraceBuffer::map_file(path));
  self.bundle->streams.push_back(std::move(stream));
  return self.bundle->streams.size() - 1;
}

// Converts records of a debug store (DS) area to a stream of branch records.
py::bytes records_of_ds(const py::buffer& data, std::size_t record_bytes,
                        std::optional<std::uint64_t> bts_index) {
  const trace::TraceBuffer buffer = buffer_from_python(data, "branch records");
  const auto layout = record_bytes == 12 ? trace::DsLayout::BITS32 : trace::DsLayout::BITS64;
  const auto dump = formats::find_bts_buffer(buffer.bytes(), layout);
  if (!dump)
    raise_failure({base::Status::BAD_FILE, 0, "the BTS buffer of this DS area is not in these bytes"});
  if (dump->buffer.size() % record_bytes != 0) {
    raise_failure({base::Status::BAD_FILE, 0,
                   std::to_string(dump->buffer.size()) + " bytes are no whole number of records of " +
                       std::to_string(record_bytes) + " bytes"});
  }
  trace::DsRecords all = trace::read_ds_buffer(dump->buffer, layout);
  if (const auto index = bts_index ? bts_index : dump->index) {
    if (const auto failure = formats::begin_at_index(all, *index)) raise_failure(*failure);
  }
  const auto made = trace::to_buffer(std::move(all.records));
  return {reinterpret_cast<const char*>(made.bytes().data()), made.size()};
}

trace::SpaceId add_space(BundleHandle& self, std::optional<std::int64_t> pid,
                         std::optional<std::uint64_t> cr3) {
  self.bundle->spaces.push_back({id_of(pid), cr3.value_or(0), cr3.has_value()});
  return static_cast<trace::SpaceId>(self.bundle->spaces.size() - 1);
}

// Calls `add` with a space: with the given one, or, if there is a CR3, with the first of its spaces.
template <typename Add>
std::int32_t add_in_spaces(BundleHandle& self, trace::SpaceId space, std::optional<std::uint64_t> cr3,
                           const Add& add) {
  if (!cr3) return add(space);
  const auto spaces = code::image::spaces_with(*self.bundle, *cr3);
  const std::size_t before = self.bundle->code.size();
  const std::int32_t file = add(spaces.front());
  code::image::repeat_in(*self.bundle, before, std::span(spaces).subspan(1));
  return file;
}

std::int32_t add_code(BundleHandle& self, std::uint64_t address, const py::buffer& bytes,
                      trace::SpaceId space, std::optional<std::uint64_t> cr3, const std::string& name) {
  const trace::TraceBuffer code = buffer_from_python(bytes, "code");
  return add_in_spaces(self, space, cr3, [&](trace::SpaceId one) {
    return code::image::add_code(*self.bundle, name, code, address, one);
  });
}

std::int32_t add_image(BundleHandle& self, const std::string& path, std::optional<std::uint64_t> load_address,
                       trace::SpaceId space, std::optional<std::uint64_t> cr3,
                       std::optional<bool> in_memory) {
  code::image::Placement placement;
  placement.load_address = load_address;
  if (in_memory) placement.layout = *in_memory ? code::image::PeLayout::MEMORY : code::image::PeLayout::FILE;
  return add_in_spaces(self, space, cr3, [&](trace::SpaceId one) {
    placement.space = one;
    return value_or_raise(code::image::add_image(*self.bundle, path, placement));
  });
}

py::tuple compare_with_pages(const BundleHandle& self, std::int32_t file) {
  const trace::PageComparison found = trace::compare_with_pages(*self.bundle, file);
  return py::make_tuple(found.pages, found.differing);
}

void set_cpu(BundleHandle& self, unsigned family, unsigned model, unsigned stepping, bool intel) {
  auto& cpu = self.bundle->configuration.cpu;
  cpu = {};
  cpu.known = true;
  cpu.intel = intel;
  cpu.family = static_cast<std::uint16_t>(family);
  cpu.model = static_cast<std::uint16_t>(model);
  cpu.stepping = static_cast<std::uint8_t>(stepping);
}

void set_clock(BundleHandle& self, std::optional<std::pair<std::uint32_t, std::uint32_t>> tsc_ctc_ratio,
               std::optional<std::uint8_t> mtc_period, std::optional<std::uint8_t> max_nonturbo_ratio,
               std::optional<std::uint64_t> tsc_hz,
               std::optional<std::tuple<std::uint32_t, std::uint16_t, std::uint64_t>> perf_time) {
  auto& clock = self.bundle->configuration.clock;
  if (tsc_ctc_ratio) {
    clock.tsc_ctc_numerator = tsc_ctc_ratio->first;
    clock.tsc_ctc_denominator = tsc_ctc_ratio->second;
  }
  if (mtc_period) {
    clock.mtc_period_known = true;
    clock.mtc_period = *mtc_period;
  }
  if (max_nonturbo_ratio) clock.max_nonturbo_ratio = *max_nonturbo_ratio;
  if (tsc_hz) clock.tsc_hz = *tsc_hz;
  if (perf_time) {
    clock.perf_time_known = true;
    std::tie(clock.time_mult, clock.time_shift, clock.time_zero) = *perf_time;
  }
}

py::object payloads_name(trace::IpPayloads payloads) {
  if (payloads == trace::IpPayloads::UNKNOWN) return py::none();
  return py::str(payloads == trace::IpPayloads::LINEAR ? "linear" : "effective");
}

py::dict configuration(const TraceBundle& bundle) {
  const auto& from = bundle.configuration;
  py::dict out;
  out["cpu"] = from.cpu.known ? py::object(py::make_tuple(from.cpu.family, from.cpu.model, from.cpu.stepping))
                              : py::object(py::none());
  out["intel"] = from.cpu.intel;
  const auto& clock = from.clock;
  out["tsc_ctc_ratio"] = clock.tsc_ctc_denominator == 0
                             ? py::object(py::none())
                             : py::object(py::make_tuple(clock.tsc_ctc_numerator, clock.tsc_ctc_denominator));
  out["mtc_period"] =
      clock.mtc_period_known ? py::object(py::int_(clock.mtc_period)) : py::object(py::none());
  out["max_nonturbo_ratio"] =
      clock.max_nonturbo_ratio == 0 ? py::object(py::none()) : py::object(py::int_(clock.max_nonturbo_ratio));
  out["tsc_hz"] = clock.tsc_hz == 0 ? py::object(py::none()) : py::object(py::int_(clock.tsc_hz));
  out["perf_time"] = clock.perf_time_known
                         ? py::object(py::make_tuple(clock.time_mult, clock.time_shift, clock.time_zero))
                         : py::object(py::none());
  out["ip_payloads"] = payloads_name(from.ip_payloads);
  out["cs_base"] = from.cs_base;
  out["rtit_ctl"] = from.rtit_ctl_known ? py::object(py::int_(from.rtit_ctl)) : py::object(py::none());
  out["ptw_disabled"] = trace::ptw_disabled(from);
  py::list ranges;
  const auto add_range = [&ranges](const trace::AddressRange& range) {
    if (range.kind == trace::RangeKind::OFF) return;
    const char* kind = range.kind == trace::RangeKind::FILTER ? "filter" : "stop";
    const py::tuple row = py::make_tuple(kind, range.first, range.last);
    if (!ranges.contains(row)) ranges.append(row);
  };
  for (const auto& range : from.ranges) add_range(range);
  for (const auto& one : from.space_ranges) add_range(one.range);
  out["ranges"] = ranges;
  return out;
}

py::list streams(const TraceBundle& bundle) {
  py::list rows;
  for (const auto& stream : bundle.streams) {
    py::dict row;
    row["name"] = text_of(stream.name);
    row["kind"] = kind_name(stream.kind);
    row["size"] = stream.data.size();
    row["cpu"] = id_or_none(stream.cpu);
    row["pid"] = id_or_none(stream.pid);
    row["tid"] = id_or_none(stream.tid);
    row["space"] = stream.space;
    row["switches"] = stream.switches.size();
    row["losses"] = stream.losses.size();
    std::uint64_t lost_bytes = 0;
    for (const auto& loss : stream.losses) lost_bytes += loss.lost_bytes;
    row["lost_bytes"] = lost_bytes;
    rows.append(row);
  }
  return rows;
}

py::list spaces(const TraceBundle& bundle) {
  py::list rows;
  for (const auto& space : bundle.spaces) {
    rows.append(py::make_tuple(id_or_none(space.pid),
                               space.cr3_known ? py::object(py::int_(space.cr3)) : py::object(py::none())));
  }
  return rows;
}

std::vector<std::size_t> spaces_of_cr3(const TraceBundle& bundle, std::uint64_t cr3) {
  std::vector<std::size_t> found;
  for (std::size_t space = 0; space < bundle.spaces.size(); ++space) {
    if (code::image::has_cr3(bundle.spaces[space], cr3)) found.push_back(space);
  }
  return found;
}

py::list code(const TraceBundle& bundle) {
  py::list rows;
  for (const auto& region : bundle.code) {
    rows.append(
        py::make_tuple(region.address, region.size, region.bytes.size() != 0, region.space, region.file));
  }
  return rows;
}

py::list names(const TraceBundle& bundle) {
  py::list rows;
  for (const auto& range : bundle.names) {
    const trace::ImageFile* const file = bundle.file(range.file);
    const bool is_module = file != nullptr && file->symbols.empty();
    rows.append(py::make_tuple(range.address, range.size, range.space, range.file, is_module));
  }
  return rows;
}

py::list files(const TraceBundle& bundle) {
  py::list rows;
  for (const auto& file : bundle.files)
    rows.append(py::make_tuple(text_of(file.path), text_of(file.build_id)));
  return rows;
}

py::list threads(const TraceBundle& bundle) {
  py::list rows;
  for (const auto& thread : bundle.threads) {
    rows.append(py::make_tuple(id_or_none(thread.pid), id_or_none(thread.tid), text_of(thread.name)));
  }
  return rows;
}

py::list outside_files(const BundleHandle& self, bool code) {
  const auto use = code ? formats::OutsideUse::CODE : formats::OutsideUse::TRACE;
  py::list paths;
  for (const std::string& path : formats::outside_files(*self.bundle, use)) paths.append(text_of(path));
  return paths;
}

// Bytes of a stream in its order: a long one is not held in memory.
class StreamBytes {
 public:
  StreamBytes(const BundleHandle& handle, std::size_t stream) {
    if (stream >= handle.bundle->streams.size()) throw py::index_error("no such stream");
    data_ = handle.bundle->streams[stream].data.again();
  }

  py::bytes read(std::size_t begin, std::size_t end) const {
    const std::size_t last = std::min(end, data_.size());
    if (begin >= last) return {};
    const base::Bytes bytes = [&] {
      const py::gil_scoped_release release;
      return data_.part(begin, last);
    }();
    const py::bytes copied(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    data_.forget_before(last);
    return copied;
  }

 private:
  trace::TraceBuffer data_;
};

}  // namespace

void set_ranges(trace::Configuration& configuration, const Ranges& ranges) {
  configuration.ranges = {};
  configuration.space_ranges.clear();
  configuration.ranges_known = true;
  for (std::size_t i = 0; i < std::min(ranges.size(), configuration.ranges.size()); ++i) {
    const auto& [kind, first, last] = ranges[i];
    configuration.ranges[i] = {kind == "stop" ? trace::RangeKind::TRACE_STOP : trace::RangeKind::FILTER,
                               first, last};
  }
}

void register_bundle(py::module_& module) {
  module.def("records_of_ds", &records_of_ds, py::arg("data"), py::arg("record_bytes"),
             py::arg("bts_index") = py::none(),
             "Branch records of a stream, made of those of a debug store area (24 bytes each, or 12); "
             "bts_index: the record that would be written next.");
  py::class_<StreamBytes>(module, "StreamBytes", "Bytes of a stream, some at a time.")
      .def(py::init<const BundleHandle&, std::size_t>(), py::arg("bundle"), py::arg("stream"))
      .def("read", &StreamBytes::read, py::arg("begin"), py::arg("end"),
           "Bytes [begin, end), as far as there are any.");
  py::class_<BundleHandle>(module, "Bundle", "A recording in memory: streams, code, clock, processor.")
      .def(py::init<>())
      .def("add_stream", &add_stream, py::arg("data"), py::kw_only(), py::arg("name") = "",
           py::arg("cpu") = py::none(), py::arg("pid") = py::none(), py::arg("tid") = py::none(),
           py::arg("space") = trace::kAnySpace, py::arg("switches") = std::vector<SwitchRow>{},
           py::arg("by_offset") = false, py::arg("kind") = "packets")
      .def("add_stream_file", &add_stream_file, py::arg("path"), py::kw_only(), py::arg("cpu") = py::none(),
           py::arg("pid") = py::none(), py::arg("space") = trace::kAnySpace)
      .def("add_space", &add_space, py::kw_only(), py::arg("pid") = py::none(), py::arg("cr3") = py::none())
      .def("add_code", &add_code, py::arg("address"), py::arg("data"), py::kw_only(),
           py::arg("space") = trace::kAnySpace, py::arg("cr3") = py::none(), py::arg("name") = "",
           "Bytes as in memory. The file that they become if they are a PE image; -1: they are none.")
      .def("add_image", &add_image, py::arg("path"), py::kw_only(), py::arg("load_address") = py::none(),
           py::arg("space") = trace::kAnySpace, py::arg("cr3") = py::none(),
           py::arg("in_memory") = py::none(),
           "in_memory: whether a PE file has the layout of memory; None: by its contents.")
      .def(
          "order_below_page_dumps",
          [](BundleHandle& self, std::size_t added, const std::vector<std::int32_t>& over) {
            trace::order_below_page_dumps(*self.bundle, added, over);
          },
          py::arg("added"), py::arg("over") = std::vector<std::int32_t>{},
          "Images, regions from `added` on, name the pages of the recording; not the files `over`.")
      .def_property_readonly("names", [](const BundleHandle& self) { return names(*self.bundle); })
      .def(
          "image_bytes",
          [](const BundleHandle& self, std::size_t file) {
            return code::image::pe_image_bytes(self.bundle->files.at(file).contents.bytes());
          },
          py::arg("file"), "SizeOfImage of a PE file; 0: not known, or another file.")
      .def("compare_with_pages", &compare_with_pages, py::arg("file"),
           "(pages over the image, those with other code).")
      .def("set_cpu", &set_cpu, py::arg("family"), py::arg("model"), py::arg("stepping") = 0, py::kw_only(),
           py::arg("intel") = true)
      .def(
          "set_cs_base",
          [](BundleHandle& self, std::uint32_t base) { self.bundle->configuration.cs_base = base; },
          py::arg("base"))
      .def(
          "set_rtit_ctl",
          [](BundleHandle& self, std::uint64_t value) {
            trace::set_rtit_ctl(self.bundle->configuration, value);
          },
          py::arg("value"), "IA32_RTIT_CTL as it was programmed, and MTCFreq from it.")
      .def(
          "set_sync", [](BundleHandle& self, bool sync) { self.bundle->configuration.sync = sync; },
          py::arg("sync"))
      .def(
          "begin_ring_at",
          [](BundleHandle& self, std::uint64_t offset) {
            for (trace::Stream& stream : self.bundle->streams) {
              if (const auto failure = formats::begin_at_offset(stream.data, offset)) raise_failure(*failure);
            }
          },
          py::arg("offset"), "Puts the bytes of a ring in order from the next one to write.")
      .def(
          "set_ranges",
          [](BundleHandle& self, const Ranges& ranges, bool all) {
            set_ranges(self.bundle->configuration, ranges);
            self.bundle->configuration.ranges_known = all;
          },
          py::arg("ranges"), py::kw_only(), py::arg("all") = true, "all: there were no others.")
      .def("set_clock", &set_clock, py::kw_only(), py::arg("tsc_ctc_ratio") = py::none(),
           py::arg("mtc_period") = py::none(), py::arg("max_nonturbo_ratio") = py::none(),
           py::arg("tsc_hz") = py::none(), py::arg("perf_time") = py::none())
      .def_property(
          "format", [](const BundleHandle& self) { return text_of(self.bundle->format); },
          [](BundleHandle& self, std::string name) { self.bundle->format = std::move(name); })
      .def_property(
          "source", [](const BundleHandle& self) { return path_of(self.bundle->source); },
          [](BundleHandle& self, std::string name) { self.bundle->source = std::move(name); })
      .def_property_readonly("configuration",
                             [](const BundleHandle& self) { return configuration(*self.bundle); })
      .def_property_readonly("streams", [](const BundleHandle& self) { return streams(*self.bundle); })
      .def_property_readonly("spaces", [](const BundleHandle& self) { return spaces(*self.bundle); })
      .def(
          "spaces_of_cr3",
          [](const BundleHandle& self, std::uint64_t cr3) { return spaces_of_cr3(*self.bundle, cr3); },
          py::arg("cr3"))
      .def_property_readonly("code", [](const BundleHandle& self) { return code(*self.bundle); })
      .def_property_readonly("code_count", [](const BundleHandle& self) { return self.bundle->code.size(); })
      .def_property_readonly("files", [](const BundleHandle& self) { return files(*self.bundle); })
      .def_property_readonly("threads", [](const BundleHandle& self) { return threads(*self.bundle); })
      .def_property_readonly("metadata",
                             [](const BundleHandle& self) { return text_of(self.bundle->metadata); })
      .def("outside_files", &outside_files, py::kw_only(), py::arg("code"),
           "Paths of files outside of the recording's folder that became code, or trace.")
      .def_property_readonly("warnings",
                             [](const BundleHandle& self) { return python_warnings(self.bundle->warnings); });
}

}  // namespace ptkit::api::python
