// Functions by which readers in Python (python/ptkit/readers) add to a bundle and recognize files.
#include <algorithm>

#include "api/python/bindings.h"
#include "api/python/text.h"
#include "formats/common/files.h"
#include "formats/common/missing_files.h"
#include "formats/foreign/drakvuf_scan.h"
#include "formats/mapped_files/binaries.h"
#include "formats/registry.h"
#include "trace/warning_codes.h"

namespace ptkit::api::python {
namespace {

template <typename T>
using Converted = py::array_t<T, py::array::c_style | py::array::forcecast>;

trace::Stream& stream_of(const BundleHandle& self, std::size_t stream) {
  if (stream >= self.bundle->streams.size()) throw py::index_error("no such stream");
  return self.bundle->streams[stream];
}

void check_space(const BundleHandle& self, trace::SpaceId space) {
  if (space >= self.bundle->spaces.size()) throw py::index_error("no such address space");
}

// -1: not known.
void set_switches(const BundleHandle& self, std::size_t stream, const Converted<std::uint64_t>& offsets,
                  const Converted<std::int64_t>& pids, const Converted<std::int64_t>& tids,
                  const Converted<trace::SpaceId>& spaces) {
  const py::ssize_t rows = offsets.size();
  if (pids.size() != rows || tids.size() != rows || spaces.size() != rows)
    throw py::value_error("columns of context switches differ in length");
  trace::Stream& to = stream_of(self, stream);
  to.switches_by_offset = true;
  to.switches.resize(static_cast<std::size_t>(rows));
  for (py::ssize_t row = 0; row < rows; ++row) {
    check_space(self, spaces.data()[row]);
    trace::Switch& one = to.switches[static_cast<std::size_t>(row)];
    one.offset = offsets.data()[row];
    one.pid = pids.data()[row];
    one.tid = tids.data()[row];
    one.space = spaces.data()[row];
  }
}

void assign_stream(const BundleHandle& self, std::size_t stream, std::optional<std::int64_t> pid,
                   trace::SpaceId space) {
  check_space(self, space);
  stream_of(self, stream).pid = pid.value_or(trace::kNoId);
  stream_of(self, stream).space = space;
}

void add_page(const BundleHandle& self, std::uint64_t address, const py::buffer& data, trace::SpaceId space) {
  check_space(self, space);
  trace::CodeRegion region;
  region.space = space;
  region.address = address;
  region.bytes = buffer_from_python(data, "code");
  region.size = region.bytes.size();
  if (region.size == 0 || address + (region.size - 1) < address)
    throw py::value_error("a page has no bytes, or lies at the end of the address space");
  self.bundle->code.push_back(std::move(region));
}

void add_module(const BundleHandle& self, const std::string& path, std::uint64_t address, std::uint64_t size,
                trace::SpaceId space) {
  check_space(self, space);
  if (size == 0 || address + (size - 1) < address)
    throw py::value_error("a module has no bytes, or lies at the end of the address space");
  trace::CodeRegion region;
  region.space = space;
  region.address = address;
  region.size = size;
  region.file = static_cast<std::int32_t>(self.bundle->files.size());
  self.bundle->files.push_back({path, "", {}, {}});
  self.bundle->code.push_back(std::move(region));
}

// (space, page tables, address, size, file offset, path)
using MappingRow =
    std::tuple<trace::SpaceId, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::string>;

void add_mapped_files(const BundleHandle& self, const py::list& rows, const std::string& own,
                      const std::vector<std::string>& binaries, const std::string& recorded_at) {
  std::vector<formats::perf::FileMapping> mappings;
  mappings.reserve(rows.size());
  for (const py::handle row : rows) {
    auto [space, owner, address, size, offset, path] = row.cast<MappingRow>();
    check_space(self, space);
    mappings.push_back({space, owner, address, size, offset, std::move(path)});
  }
  const py::gil_scoped_release release;
  formats::perf::add_mapped_files(*self.bundle, {own, binaries, recorded_at}, mappings);
}

void add_warning(const BundleHandle& self, const std::string& code, const std::vector<std::string>& arguments,
                 const std::string& subject) {
  const auto row = std::ranges::find(trace::kWarnings, code, &trace::WarningRow::name);
  if (row == std::end(trace::kWarnings) || trace::count_arguments(row->code) != arguments.size())
    throw py::value_error(code + " has another name, or another number of arguments");
  self.bundle->warnings.push_back({.code = row->code, .arguments = arguments, .subject = subject});
}

template <typename T, typename Rows, typename Value>
py::array_t<T> column_of(const Rows& rows, Value&& value) {
  py::array_t<T> cells(static_cast<py::ssize_t>(rows.size()));
  std::ranges::transform(rows, cells.mutable_data(), value);
  return cells;
}

// (offsets, marks, data, offsets of PIP packets, their CR3, number of marks without trace before).
py::tuple scan_drakvuf(const BundleHandle& self, std::size_t stream, std::optional<std::size_t> most) {
  using formats::drakvuf::Annotation;
  using formats::drakvuf::Paging;
  const trace::TraceBuffer& data = stream_of(self, stream).data;
  const auto found = [&] {
    const py::gil_scoped_release release;
    return formats::drakvuf::scan(data.part(0, std::min(most.value_or(data.size()), data.size())));
  }();
  return py::make_tuple(
      column_of<std::uint64_t>(found.annotations, [](const Annotation& one) { return one.offset; }),
      column_of<std::uint32_t>(found.annotations,
                               [](const Annotation& one) { return static_cast<std::uint32_t>(one.mark); }),
      column_of<std::uint32_t>(found.annotations, [](const Annotation& one) { return one.data; }),
      column_of<std::uint64_t>(found.pips, [](const Paging& one) { return one.offset; }),
      column_of<std::uint64_t>(found.pips, [](const Paging& one) { return one.cr3; }), found.no_data);
}

base::Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

py::str name_of(const formats::Format* format) { return {format == nullptr ? "" : format->name}; }

}  // namespace

void register_readers(py::module_& module) {
  module.def(
      "recognized_format", [](const std::string& path) { return name_of(formats::find_format(path)); },
      py::arg("path"), "Name of the reader in C++ that recognises the path; empty: none.");
  module.def(
      "recognized_format_of_bytes",
      [](const py::buffer& data) {
        return name_of(formats::find_format_of_bytes(buffer_from_python(data, "a recording").bytes()));
      },
      py::arg("data"));
  module.def("set_switches", &set_switches, py::arg("bundle"), py::arg("stream"), py::arg("offsets"),
             py::arg("pids"), py::arg("tids"), py::arg("spaces"),
             "Context switches at offsets of a stream; -1: not known.");
  module.def("assign_stream", &assign_stream, py::arg("bundle"), py::arg("stream"), py::kw_only(),
             py::arg("pid"), py::arg("space"));
  module.def(
      "set_user_cr3",
      [](const BundleHandle& self, trace::SpaceId space, std::uint64_t cr3) {
        check_space(self, space);
        self.bundle->spaces[space].user_cr3 = cr3;
      },
      py::arg("bundle"), py::arg("space"), py::arg("cr3"),
      "CR3 of user code, where the kernel isolates page tables.");
  module.def(
      "add_thread",
      [](const BundleHandle& self, std::int64_t pid, std::int64_t tid, const std::string& name) {
        self.bundle->threads.push_back({pid, tid, name});
      },
      py::arg("bundle"), py::arg("pid"), py::arg("tid"), py::arg("name"));
  module.def("add_page", &add_page, py::arg("bundle"), py::arg("address"), py::arg("data"), py::kw_only(),
             py::arg("space") = trace::kAnySpace, "Bytes as in memory, of no file.");
  module.def("add_module", &add_module, py::arg("bundle"), py::arg("path"), py::arg("address"),
             py::arg("size"), py::kw_only(), py::arg("space") = trace::kAnySpace,
             "A module of which the address is known and the bytes are not.");
  module.def("add_mapped_files", &add_mapped_files, py::arg("bundle"), py::arg("rows"), py::arg("own"),
             py::arg("binaries"), py::arg("recorded_at"),
             "Code of files by rows (space, page tables, address, size, file offset, path).");
  module.def("add_warning", &add_warning, py::arg("bundle"), py::arg("code"), py::arg("arguments"),
             py::arg("subject"));
  module.def(
      "list_missing_file",
      [](const BundleHandle& self, const std::string& path) {
        const formats::MissingFile missing{.path = path};
        formats::list_missing_files(*self.bundle, {&missing, 1});
      },
      py::arg("bundle"), py::arg("path"));
  module.def(
      "list_outside_links",
      [](const BundleHandle& self, const std::string& folder) {
        formats::list_outside_files(*self.bundle, formats::find_outside_links(folder));
      },
      py::arg("bundle"), py::arg("folder"), "Lists files outside of the folder that links in it lead to.");
  module.def("scan_drakvuf", &scan_drakvuf, py::arg("bundle"), py::arg("stream"),
             py::arg("most") = py::none(),
             "(offsets, marks, data, offsets of PIP packets, their CR3, marks without trace before).");
  module.def(
      "is_drakvuf_stream",
      [](const py::bytes& head) {
        const base::Bytes bytes = bytes_of(std::string_view(head));
        return formats::has_early_psb(bytes) && formats::drakvuf::has_annotation(bytes);
      },
      py::arg("head"));
}

}  // namespace ptkit::api::python
