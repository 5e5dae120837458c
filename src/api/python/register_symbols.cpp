// Resolves addresses to symbols, and symbols to addresses. Reads lists of symbols.
#include <optional>
#include <span>

#include "api/python/bindings.h"
#include "api/python/text.h"
#include "code/image/generated_name.h"
#include "code/source/pdb/pdb_file.h"
#include "code/symbol/anon_memory.h"
#include "code/symbol/names/demangle.h"
#include "code/symbol/names/microsoft.h"
#include "code/symbol/names/short_name.h"
#include "code/symbol/names/similar_names.h"
#include "code/symbol/row_names.h"
#include "formats/perf_event/jit.h"
#include "formats/symbols/symbol_list.h"
#include "trace/module_names.h"

namespace ptkit::api::python {
namespace {

template <typename T>
using Array = py::array_t<T, py::array::c_style | py::array::forcecast>;
using Times = std::tuple<Array<std::uint64_t>, Array<std::uint32_t>, Array<bool>>;

template <typename T>
std::span<const T> cells(const Array<T>& array, py::ssize_t rows) {
  if (array.ndim() != 1 || array.size() != rows)
    throw py::value_error("arrays of " + std::to_string(array.size()) + " and " + std::to_string(rows) +
                          " rows do not fit");
  return {array.data(), static_cast<std::size_t>(rows)};
}

code::symbol::RowAddresses addresses_of(const Array<std::uint64_t>& ips, const Array<std::uint32_t>& spaces,
                                        const std::optional<Array<bool>>& known,
                                        const std::optional<Times>& times) {
  const py::ssize_t rows = ips.size();
  code::symbol::RowAddresses addresses;
  addresses.ips = cells(ips, rows);
  addresses.spaces = cells(spaces, rows);
  if (known) addresses.known = cells(*known, rows);
  if (times) {
    addresses.tsc = cells(std::get<0>(*times), rows);
    addresses.tsc_error = cells(std::get<1>(*times), rows);
    addresses.time_known = cells(std::get<2>(*times), rows);
  }
  return addresses;
}

// The output arrays for so many rows.
struct Filled {
  Filled(py::ssize_t rows, bool with_offsets) : codes(rows), offsets(with_offsets ? rows : 0) {
    out.codes = {codes.mutable_data(), static_cast<std::size_t>(codes.size())};
    out.offsets = {offsets.mutable_data(), static_cast<std::size_t>(offsets.size())};
  }
  py::array_t<std::int32_t> codes;
  py::array_t<std::uint64_t> offsets;
  code::symbol::RowCodes out;
};

py::tuple name_symbols(const Session& self, const Array<std::uint64_t>& ips,
                       const Array<std::uint32_t>& spaces, const std::optional<Array<bool>>& known,
                       const std::optional<Times>& times, bool offsets, bool imports, bool modules) {
  const code::symbol::RowAddresses addresses = addresses_of(ips, spaces, known, times);
  const Filled filled(ips.size(), offsets);
  std::vector<std::string_view> found;
  {
    const py::gil_scoped_release nogil;
    const auto name = !imports  ? code::symbol::name_symbols
                      : modules ? code::symbol::name_import_modules
                                : code::symbol::name_imports;
    found = name(*self.symbols, *self.image, addresses, filled.out);
  }
  py::list names;
  for (const std::string_view name : found) names.append(text_of(name));
  return py::make_tuple(filled.codes, filled.offsets, names);
}

py::tuple name_files(const Session& self, const Array<std::uint64_t>& ips, const Array<std::uint32_t>& spaces,
                     const std::optional<Array<bool>>& known, const std::optional<Times>& times, bool offsets,
                     bool rva) {
  const code::symbol::RowAddresses addresses = addresses_of(ips, spaces, known, times);
  const Filled filled(ips.size(), offsets);
  {
    const py::gil_scoped_release nogil;
    code::symbol::name_files(*self.symbols, *self.image, rva ? self.loads.get() : nullptr, addresses,
                             filled.out);
  }
  return py::make_tuple(filled.codes, filled.offsets);
}

const code::symbol::SourceLines& lines_of(const Session& self) {
  if (!self.lines) throw py::value_error("a session without folders for debug files");
  return *self.lines;
}

py::tuple name_lines(const Session& self, const Array<std::uint64_t>& ips, const Array<std::uint32_t>& spaces,
                     const std::optional<Times>& times, bool declared) {
  const code::symbol::RowAddresses addresses = addresses_of(ips, spaces, std::nullopt, times);
  const Filled filled(ips.size(), true);
  std::vector<std::string_view> files;
  {
    const py::gil_scoped_release nogil;
    files = code::symbol::name_lines(lines_of(self), *self.image, addresses, filled.out, declared);
  }
  py::list paths;
  for (const std::string_view file : files) paths.append(text_of(file));
  return py::make_tuple(filled.codes, filled.offsets, paths);
}

py::tuple name_inlined(const Session& self, const Array<std::uint64_t>& ips,
                       const Array<std::uint32_t>& spaces, const std::optional<Array<bool>>& known,
                       const std::optional<Times>& times, const Array<std::uint8_t>& levels) {
  const code::symbol::RowAddresses addresses = addresses_of(ips, spaces, known, times);
  const Filled filled(ips.size(), false);
  std::vector<std::string> found;
  {
    const auto levels_of = cells(levels, ips.size());
    const py::gil_scoped_release nogil;
    found = code::symbol::name_inlined(lines_of(self), *self.image, addresses, levels_of, filled.out);
  }
  py::list names;
  for (const std::string& name : found) names.append(text_of(name));
  return py::make_tuple(filled.codes, names);
}

py::array_t<std::uint8_t> inline_levels(const Session& self, const Array<std::uint64_t>& ips,
                                        const Array<std::uint32_t>& spaces) {
  const code::symbol::RowAddresses addresses = addresses_of(ips, spaces, std::nullopt, std::nullopt);
  py::array_t<std::uint8_t> levels(ips.size());
  const std::span<std::uint8_t> out(levels.mutable_data(), static_cast<std::size_t>(levels.size()));
  {
    const py::gil_scoped_release nogil;
    code::symbol::find_inline_levels(lines_of(self), *self.image, addresses, out);
  }
  return levels;
}

py::list source_frames(const Session& self, const Array<std::uint64_t>& ips,
                       const Array<std::uint32_t>& spaces, const std::optional<Times>& times) {
  const code::symbol::RowAddresses addresses = addresses_of(ips, spaces, std::nullopt, times);
  if (addresses.ips.size() != 1) throw py::value_error("not one address");
  std::vector<code::symbol::SourceFrame> frames;
  {
    const py::gil_scoped_release nogil;
    frames = code::symbol::frames_of(lines_of(self), *self.symbols, *self.image, addresses);
  }
  py::list found;
  for (const code::symbol::SourceFrame& frame : frames)
    found.append(py::make_tuple(text_of(frame.function), text_of(frame.file), frame.line));
  return found;
}

py::list short_names(const py::list& names) {
  py::list found;
  for (const py::handle name : names) {
    Py_ssize_t size = 0;
    const char* const text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
    if (text == nullptr) {  // surrogates of a path; no name of a language has them
      PyErr_Clear();
      found.append(name);
      continue;
    }
    const std::string_view full(text, static_cast<std::size_t>(size));
    const std::string shorter = code::symbol::short_name(full);
    if (shorter == full) {
      found.append(name);
    } else {
      found.append(py::str(shorter));
    }
  }
  return found;
}

// A column of the table of mappings.
template <typename T, typename Value>
void add_column(py::dict& columns, const char* name, const std::vector<code::symbol::Mapping>& rows,
                Value&& value) {
  py::array_t<T> cells(static_cast<py::ssize_t>(rows.size()));
  T* out = cells.mutable_data();
  for (const code::symbol::Mapping& row : rows) *out++ = static_cast<T>(value(row));
  columns[name] = cells;
}

py::dict mappings(const Session& self) {
  std::vector<code::symbol::Mapping> rows;
  {
    const py::gil_scoped_release nogil;
    rows = self.loads->mappings();
  }
  using code::symbol::Mapping;
  py::dict columns;
  add_column<std::uint64_t>(columns, "address", rows, [](const Mapping& row) { return row.address; });
  add_column<std::uint64_t>(columns, "size", rows, [](const Mapping& row) { return row.size; });
  add_column<std::int32_t>(columns, "file", rows, [](const Mapping& row) { return row.file; });
  add_column<std::uint64_t>(columns, "file_offset", rows, [](const Mapping& row) { return row.file_offset; });
  add_column<std::uint64_t>(columns, "rva", rows, [](const Mapping& row) { return row.rva; });
  add_column<std::uint32_t>(columns, "space", rows, [](const Mapping& row) { return row.space; });
  add_column<std::uint64_t>(columns, "tsc_from", rows, [](const Mapping& row) { return row.tsc_from; });
  add_column<std::uint64_t>(columns, "tsc_to", rows, [](const Mapping& row) { return row.tsc_to; });
  return columns;
}

py::array_t<std::int32_t> find_regions(const Session& self, const Array<std::uint64_t>& ips,
                                       const Array<std::uint32_t>& spaces,
                                       const std::optional<Times>& times) {
  const code::symbol::RowAddresses addresses = addresses_of(ips, spaces, std::nullopt, times);
  const Filled filled(ips.size(), false);
  {
    const py::gil_scoped_release nogil;
    code::symbol::find_regions(*self.image, addresses, filled.out);
  }
  return filled.codes;
}

py::list code_regions(const Session& self) {
  py::list rows;
  for (const trace::CodeRegion& region : self.bundle->code)
    rows.append(py::make_tuple(region.address, region.size, region.file, region.space, region.tsc_from,
                               region.tsc_to));
  return rows;
}

py::list anon_memory(const Session& self) {
  py::list modules;
  for (const code::symbol::AnonModule& one : self.symbols->anon_memory().modules())
    modules.append(py::make_tuple(text_of(one.name()), one.space, one.base, one.last));
  return modules;
}

py::list symbol_rows(const std::vector<code::symbol::Symbol>& symbols) {
  py::list rows;
  for (const auto& found : symbols) {
    rows.append(py::make_tuple(text_of(found.name), found.address, found.size, found.file, found.space));
  }
  return rows;
}

py::str demangled(const py::str& name) {
  Py_ssize_t size = 0;
  const char* const text = PyUnicode_AsUTF8AndSize(name.ptr(), &size);
  if (text == nullptr) {  // surrogates of a path; no name of a language has them
    PyErr_Clear();
    return name;
  }
  return text_of(code::symbol::demangle({text, static_cast<std::size_t>(size)}));
}

// Names of modules are parts of paths: they may have surrogates.
template <std::string (*Name)(std::string_view, std::uint64_t)>
py::str named_by_module(const py::str& module, std::uint64_t offset) {
  const auto bytes = py::reinterpret_steal<py::bytes>(PyUnicode_EncodeFSDefault(module.ptr()));
  if (!bytes) throw py::error_already_set();
  return path_of(Name(std::string_view(bytes), offset));
}

// A list of symbols that was read, and its name in messages.
struct NamedList {
  std::string path;
  formats::SymbolList list;
};

// (name, begin, end or size) of a module or a segment.
using NamedRange = std::tuple<std::string, std::uint64_t, std::uint64_t>;

void add_entries(base::Bytes text, std::span<const std::int64_t> begin, std::span<const std::int64_t> end,
                 std::span<const std::uint64_t> addresses, std::span<const std::uint64_t> sizes,
                 std::vector<trace::SymbolEntry>& out) {
  const char* const names = reinterpret_cast<const char*>(text.data());
  out.reserve(begin.size());
  for (std::size_t row = 0; row < begin.size(); ++row) {
    const auto size = static_cast<std::size_t>(end[row] - begin[row]);
    out.push_back({std::string(names + begin[row], size), addresses[row], sizes[row]});
  }
}

NamedList list_of_columns(const std::string& path, const std::string& kind, const py::buffer& text,
                          const Array<std::int64_t>& begin, const Array<std::int64_t>& end,
                          const Array<std::uint64_t>& addresses, const Array<std::uint64_t>& sizes,
                          const std::vector<NamedRange>& modules, bool at_run_time,
                          std::optional<std::uint64_t> linked_base, const std::string& module,
                          const std::string& guid, std::uint64_t age,
                          const std::vector<NamedRange>& segments) {
  const trace::TraceBuffer names = buffer_from_python(text, "names of symbols");
  const auto rows = begin.size();
  const auto first = cells(begin, rows);
  const auto last = cells(end, rows);
  for (std::size_t row = 0; row < first.size(); ++row) {
    if (first[row] < 0 || first[row] >= last[row] || static_cast<std::uint64_t>(last[row]) > names.size())
      throw py::value_error("a name of a symbol is empty or not in the text");
  }
  NamedList named{path, {.kind = kind}};
  formats::SymbolList& list = named.list;
  {
    const auto at = cells(addresses, rows);
    const auto size = cells(sizes, rows);
    const py::gil_scoped_release release;
    add_entries(names.bytes(), first, last, at, size, list.symbols);
  }
  for (const auto& [name, from, to] : modules) list.modules.push_back({name, from, to});
  for (const auto& [name, from, bytes] : segments) list.segments.push_back({name, from, bytes});
  list.at_run_time = at_run_time;
  list.linked_base = linked_base;
  list.module = module;
  list.pdb = code::pdb::pdb_id(guid, age);
  if (at_run_time) list.pid = trace::pid_of_jit_map(path).value_or(trace::kNoId);
  return named;
}

NamedList list_of_pdb(const std::string& path, const py::buffer& data) {
  const trace::TraceBuffer buffer = buffer_from_python(data, "a PDB");
  const py::gil_scoped_release release;
  return {path, formats::read_pdb_list(path, buffer.bytes())};
}

// Columns of a perf-PID.map: bounds of names, addresses, sizes.
py::tuple jit_map_columns(const py::buffer& data) {
  const trace::TraceBuffer buffer = buffer_from_python(data, "a map of JIT code");
  const std::string_view text(reinterpret_cast<const char*>(buffer.bytes().data()), buffer.size());
  const auto lines = [&] {
    const py::gil_scoped_release release;
    return formats::perf::read_jit_map_lines(text);
  }();
  const auto rows = static_cast<py::ssize_t>(lines.size());
  py::array_t<std::int64_t> begin(rows);
  py::array_t<std::int64_t> end(rows);
  py::array_t<std::uint64_t> addresses(rows);
  py::array_t<std::uint64_t> sizes(rows);
  for (py::ssize_t row = 0; row < rows; ++row) {
    const formats::perf::JitMapLine& line = lines[static_cast<std::size_t>(row)];
    begin.mutable_data()[row] = line.name.data() - text.data();
    end.mutable_data()[row] = begin.data()[row] + static_cast<std::int64_t>(line.name.size());
    addresses.mutable_data()[row] = line.address;
    sizes.mutable_data()[row] = line.size;
  }
  return py::make_tuple(begin, end, addresses, sizes);
}

// Takes the symbols out of the list.
void add_symbols(BundleHandle& self, NamedList& list, std::optional<std::uint64_t> base,
                 std::optional<std::uint64_t> cr3) {
  const auto failure = [&] {
    const py::gil_scoped_release release;
    return formats::add_symbols(*self.bundle, list.path, std::move(list.list), base, cr3);
  }();
  if (failure) raise_failure(*failure);
}

}  // namespace

void register_symbols(py::module_& module) {
  py::class_<NamedList>(module, "SymbolList", "A list of symbols of another tool.")
      .def(py::init(&list_of_columns), py::arg("path"), py::arg("kind"), py::arg("text"), py::arg("begin"),
           py::arg("end"), py::arg("addresses"), py::arg("sizes"), py::kw_only(),
           py::arg("modules") = std::vector<NamedRange>{}, py::arg("at_run_time") = false,
           py::arg("linked_base") = py::none(), py::arg("module") = "", py::arg("guid") = "",
           py::arg("age") = 0, py::arg("segments") = std::vector<NamedRange>{},
           "Columns of symbols; names are ranges of the text.")
      .def_static("of_pdb", &list_of_pdb, py::arg("path"), py::arg("data"))
      .def_property_readonly("kind", [](const NamedList& self) { return text_of(self.list.kind); });
  module.def(
      "is_pdb",
      [](const py::buffer& data) { return code::pdb::is_pdb(buffer_from_python(data, "a file").bytes()); },
      py::arg("data"));
  module.def("jit_map_columns", &jit_map_columns, py::arg("data"),
             "(begin, end, addresses, sizes) of the lines of a perf-PID.map; names are ranges of the text.");
  module.def(
      "add_modules",
      [](BundleHandle& bundle, const NamedList& list) { formats::add_modules(*bundle.bundle, list.list); },
      py::arg("bundle"), py::arg("symbols"), "Adds the modules that a list names.");
  module.def(
      "add_symbols", &add_symbols, py::arg("bundle"), py::arg("symbols"), py::arg("base") = py::none(),
      py::arg("cr3") = py::none(),
      "Moves symbols to their addresses; base: that of their module; cr3: of the process that has it.");
  module.def(
      "name_symbols", &name_symbols, py::arg("session"), py::arg("ips"), py::arg("spaces"),
      py::arg("known") = py::none(), py::arg("times") = py::none(), py::arg("offsets") = true,
      py::arg("imports") = false, py::arg("modules") = false,
      "Symbols of rows, or imports that their branches go through, or the modules of these: (codes, offsets, "
      "names); code -1: none.");
  module.def("name_files", &name_files, py::arg("session"), py::arg("ips"), py::arg("spaces"),
             py::arg("known") = py::none(), py::arg("times") = py::none(), py::arg("offsets") = true,
             py::arg("rva") = false,
             "Modules of rows: (numbers, offsets in files or RVAs). Numbers are those of files, and after "
             "these, of anon_memory(); -1: none.");
  module.def("find_regions", &find_regions, py::arg("session"), py::arg("ips"), py::arg("spaces"),
             py::arg("times") = py::none(), "Indices in code_regions() of the code of rows; -1: none.");
  module.def("code_regions", &code_regions, py::arg("session"),
             "(address, size, file, space, from, until) of each, the times in TSC ticks.");
  module.def("anon_memory", &anon_memory, py::arg("session"),
             "Memory that has code of no file: (name, space, first, last address), sorted.");
  module.def("name_inlined", &name_inlined, py::arg("session"), py::arg("ips"), py::arg("spaces"),
             py::arg("known"), py::arg("times"), py::arg("levels"),
             "Functions of rows' inlined calls: (codes, names); code -1: no name.");
  module.def(
      "name_lines", &name_lines, py::arg("session"), py::arg("ips"), py::arg("spaces"),
      py::arg("times") = py::none(), py::kw_only(), py::arg("declared") = false,
      "Source lines of rows: (codes, lines, files); code -1: none. declared: where the functions of the "
      "rows are declared.");
  module.def("inline_levels", &inline_levels, py::arg("session"), py::arg("ips"), py::arg("spaces"),
             "Number of inlined calls that each address is in.");
  module.def("source_frames", &source_frames, py::arg("session"), py::arg("ips"), py::arg("spaces"),
             py::arg("times") = py::none(), "(function, file, line) of each function at the one address.");
  module.def(
      "has_imports", [](const Session& self) { return self.symbols->has_imports(); }, py::arg("session"));
  module.def("mappings", &mappings, py::arg("session"), "Columns of the table of mappings, but flags.");
  module.def(
      "lookup_symbol",
      [](const Session& self, const std::string& name, const std::vector<std::int32_t>& files) {
        return symbol_rows(self.symbols->lookup(name, files));
      },
      py::arg("session"), py::arg("name"), py::arg("files") = py::tuple(),
      "(name, address, size, file, space) of every symbol of that name, of some files or of all.");
  module.def(
      "match_symbols",
      [](const Session& self, const std::string& pattern, bool with_names) {
        std::vector<code::symbol::Symbol> found;
        {
          const py::gil_scoped_release nogil;
          found = self.symbols->matching(pattern, with_names);
        }
        return symbol_rows(found);
      },
      py::arg("session"), py::arg("pattern"), py::arg("with_names") = true,
      "The same for each name that a pattern matches; without `with_names`, names are empty.");
  module.def(
      "similar_symbols",
      [](const Session& self, const std::string& name, std::size_t limit) {
        py::list names;
        for (const std::string& one : self.symbols->similar(name, limit)) names.append(text_of(one));
        return names;
      },
      py::arg("session"), py::arg("name"), py::arg("limit") = 5);
  module.def(
      "similar_names",
      [](const std::string& name, const std::vector<std::string>& among, std::size_t limit) {
        code::symbol::SimilarNames similar(name, limit);
        for (const std::string& one : among) similar.add(one);
        py::list names;
        for (const std::string& one : similar.names()) names.append(text_of(one));
        return names;
      },
      py::arg("name"), py::arg("among"), py::arg("limit") = 5,
      "Short forms of those names that are similar to one, the nearest ones first.");
  module.def("has_microsoft_demangler", &code::symbol::has_microsoft_demangler,
             "Whether names such as ?f@@YAXXZ are demangled.");
  module.def("demangled", &demangled, py::arg("name"), "A name as the core shows it.");
  module.def("generated_name", &named_by_module<code::image::generated_name>, py::arg("module"),
             py::arg("rva"), "The name of a function without one.");
  module.def("address_in_module", &named_by_module<code::image::address_in_module>, py::arg("module"),
             py::arg("offset"), "The name of an address without a function.");
  module.def("short_names", &short_names, py::arg("names"),
             "The short form of each name: without template arguments, parameters and return type.");
}

}  // namespace ptkit::api::python
