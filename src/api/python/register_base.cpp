// Maps statuses to exceptions in one table. Passes buffers and batches to and from Python.
#include <algorithm>
#include <stdexcept>

#include "api/python/bindings.h"
#include "api/python/text.h"
#include "base/memory_left.h"
#include "trace/failure_text.h"
#include "trace/warning_codes.h"

namespace ptkit::api::python {
namespace {

struct Raised {
  base::Status status;
  const char* exception;  // a class of ptkit.errors
};

// A status that is not listed is an error in the trace: DecodeError.
constexpr Raised kRaised[] = {
    {base::Status::IO_ERROR, "OpenError"},     {base::Status::BAD_FILE, "FormatError"},
    {base::Status::BAD_CONFIG, "ConfigError"}, {base::Status::UNSUPPORTED, "UnsupportedError"},
    {base::Status::NO_SYNC, "FormatError"},
};

const char* exception_for(base::Status status) noexcept {
  for (const auto& row : kRaised) {
    if (row.status == status) return row.exception;
  }
  return "DecodeError";
}

template <typename T>
py::array typed_array(void* cells, std::size_t rows, const py::object& owner) {
  auto array = cells == nullptr
                   ? py::array_t<T>(0)
                   : py::array_t<T>(static_cast<py::ssize_t>(rows), static_cast<const T*>(cells), owner);
  array.attr("flags").attr("writeable") = false;
  return py::array(std::move(array));
}

py::array owned_array(tables::columns::CellType type, tables::columns::ColumnMemory memory,
                      std::size_t rows) {
  py::object owner;
  void* const cells = memory.data();
  if (cells != nullptr)
    owner = py::capsule(new tables::columns::ColumnMemory(std::move(memory)),
                        [](void* kept) { delete static_cast<tables::columns::ColumnMemory*>(kept); });
  return read_only_array(type, cells, rows, owner);
}

// Rows of a column that is kept as runs, until Python needs its array.
struct RunColumn {
  tables::columns::CellRuns runs;
  std::size_t rows = 0;
};

py::array array_of(const RunColumn& column) {
  tables::columns::ColumnMemory memory;
  if (column.rows != 0) {
    const py::gil_scoped_release release;
    const std::size_t cells = column.rows + tables::columns::CellRuns::kSlack;
    if (!memory.grow(cells * sizeof(std::uint64_t), 0)) throw std::bad_alloc();
    column.runs.write_wide(0, column.rows, reinterpret_cast<std::uint64_t*>(memory.data()));
  }
  return owned_array(tables::columns::CellType::U64, std::move(memory), column.rows);
}

template <typename T>
py::array typed_uniform_array(std::uint64_t value, std::size_t rows) {
  py::array_t<T> cell(1);
  *cell.mutable_data() = static_cast<T>(value);
  py::array_t<T> array({static_cast<py::ssize_t>(rows)}, {py::ssize_t{0}}, cell.data(), cell);
  array.attr("flags").attr("writeable") = false;
  return py::array(std::move(array));
}

template <typename T, typename Get>
py::array_t<T> run_column(const std::vector<tables::columns::OwnerRun>& runs, Get get) {
  py::array_t<T> array(static_cast<py::ssize_t>(runs.size()));
  auto* cells = array.mutable_data();
  for (std::size_t i = 0; i < runs.size(); ++i) cells[i] = get(runs[i]);
  array.attr("flags").attr("writeable") = false;
  return array;
}

std::string memory_sentence() {
  const base::MemoryBound least = base::memory_left().least();
  const std::string free = std::to_string(least.bytes >> 20U) + " MiB are free (" +
                           std::string(base::memory_limit_name(least.limit)) + ")";
  return "out of memory: " + (least.limit == base::MemoryLimit::NONE ? "the system gives no more" : free) +
         "; read fewer rows or columns, or parts (iter_...)";
}

// Names in a recording may hold ends of lines.
py::object line_of(const std::string& text) {
  return py::module_::import("ptkit.support.text").attr("one_line")(text_of(text));
}

// A ptkit.TraceWarning.
py::object python_warning(const trace::Warning& warning) {
  const trace::WarningRow& row = trace::warning_row(warning.code);
  py::list arguments;
  for (const std::string& argument : warning.arguments) arguments.append(line_of(argument));
  const auto type = py::module_::import("ptkit.errors").attr("TraceWarning");
  return type(line_of(warning.text()), py::arg("code") = row.name,
              py::arg("severity") = severity_name(row.severity), py::arg("remedy") = row.remedy,
              py::arg("arguments") = py::tuple(arguments));
}

// The bytes of a path or other text, as Python decoded them from the system.
std::string system_text(const py::str& text) {
  const auto bytes =
      py::reinterpret_steal<py::bytes>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape"));
  if (!bytes) throw py::error_already_set();
  return bytes;
}

py::object make_warning(const std::string& code, const std::vector<py::str>& arguments,
                        const py::str& subject) {
  const auto row = std::ranges::find(trace::kWarnings, code, &trace::WarningRow::name);
  if (row == std::end(trace::kWarnings) || trace::count_arguments(row->code) != arguments.size())
    throw std::invalid_argument(code + " has another name, or another number of arguments");
  trace::Warning warning{.code = row->code, .subject = system_text(subject)};
  for (const py::str& argument : arguments) warning.arguments.push_back(system_text(argument));
  return python_warning(warning);
}

}  // namespace

namespace {

py::str decoded(std::string_view text, const char* errors) {
  const auto size = static_cast<Py_ssize_t>(text.size());
  auto made = py::reinterpret_steal<py::str>(PyUnicode_DecodeUTF8(text.data(), size, errors));
  if (!made) throw py::error_already_set();
  return made;
}

}  // namespace

py::str text_of(std::string_view text) { return decoded(text, "backslashreplace"); }

py::str path_of(std::string_view path) { return decoded(path, "surrogateescape"); }

py::list python_warnings(const std::vector<trace::Warning>& warnings) {
  py::list out;
  for (const trace::Warning& warning : warnings) out.append(python_warning(warning));
  return out;
}

[[noreturn]] static void raise_out_of_memory(const std::string& fact) {
  if (fact.empty()) throw std::bad_alloc();
  const auto type = py::module_::import("ptkit.errors").attr("OutOfMemoryError");
  const py::object error = type(line_of(fact), "open it where more memory is free");
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

void raise_failure(const base::Failure& failure) {
  if (failure.status == base::Status::NO_MEMORY) raise_out_of_memory(failure.detail);
  std::string message = trace::failure_text(failure);
  const auto remedy = base::status_remedy(failure.status);
  if (!remedy.empty() && failure.detail.empty()) message += "; " + std::string(remedy);
  const auto type = py::module_::import("ptkit.errors").attr(exception_for(failure.status));
  const py::object error = type(line_of(message));
  error.attr("code") = static_cast<int>(failure.status);
  error.attr("offset") = failure.offset;
  PyErr_SetObject(type.ptr(), error.ptr());
  throw py::error_already_set();
}

trace::TraceBuffer buffer_from_python(const py::object& owner, const char* what) {
  if (PyObject_CheckBuffer(owner.ptr()) == 0) {
    throw py::type_error(std::string(what) + " must be bytes-like, not " + Py_TYPE(owner.ptr())->tp_name +
                         (py::isinstance<py::str>(owner) ? "; read files in mode \"rb\"" : ""));
  }
  // Releasing the buffer view needs the GIL, which the thread with the last reference may not hold.
  const auto view = py::reinterpret_borrow<py::buffer>(owner);
  std::shared_ptr<py::buffer_info> info(new py::buffer_info(view.request()), [](py::buffer_info* old) {
    const py::gil_scoped_acquire gil;
    delete old;
  });
  const auto refuse = [&](const std::string& found) {
    throw py::type_error(std::string(what) + " must be one-dimensional contiguous bytes (uint8), not " +
                         found);
  };
  if (info->itemsize != 1 || info->format == "?") {
    refuse("items of format '" + info->format + "' (" + std::to_string(info->itemsize) +
           " bytes each); give a view of its bytes, e.g. array.view(numpy.uint8)");
  }
  if (info->ndim != 1)
    refuse("an array of " + std::to_string(info->ndim) + " dimensions; give array.ravel()");
  if (info->size > 1 && info->strides[0] != 1) {
    refuse("a view with a stride of " + std::to_string(info->strides[0]) +
           "; give a copy, e.g. numpy.ascontiguousarray(array)");
  }
  const base::Bytes bytes(static_cast<const std::uint8_t*>(info->ptr), static_cast<std::size_t>(info->size));
  return {bytes, std::move(info)};
}

py::array read_only_array(tables::columns::CellType type, void* cells, std::size_t rows,
                          const py::object& owner) {
  switch (type) {
    case tables::columns::CellType::U8:
      return typed_array<std::uint8_t>(cells, rows, owner);
    case tables::columns::CellType::U16:
      return typed_array<std::uint16_t>(cells, rows, owner);
    case tables::columns::CellType::U32:
      return typed_array<std::uint32_t>(cells, rows, owner);
    case tables::columns::CellType::I32:
      return typed_array<std::int32_t>(cells, rows, owner);
    case tables::columns::CellType::I64:
      return typed_array<std::int64_t>(cells, rows, owner);
    case tables::columns::CellType::U64:
      break;
  }
  return typed_array<std::uint64_t>(cells, rows, owner);
}

py::array uniform_array(tables::columns::CellType type, std::uint64_t value, std::size_t rows) {
  switch (type) {
    case tables::columns::CellType::U8:
      return typed_uniform_array<std::uint8_t>(value, rows);
    case tables::columns::CellType::U16:
      return typed_uniform_array<std::uint16_t>(value, rows);
    case tables::columns::CellType::U32:
      return typed_uniform_array<std::uint32_t>(value, rows);
    case tables::columns::CellType::I32:
      return typed_uniform_array<std::int32_t>(value, rows);
    case tables::columns::CellType::I64:
      return typed_uniform_array<std::int64_t>(value, rows);
    case tables::columns::CellType::U64:
      break;
  }
  return typed_uniform_array<std::uint64_t>(value, rows);
}

py::dict runs_to_python(const std::vector<tables::columns::OwnerRun>& runs) {
  using tables::columns::OwnerRun;
  py::dict out;
  out["row"] = run_column<std::uint64_t>(runs, [](const OwnerRun& run) { return run.row; });
  out["stream"] = run_column<std::uint32_t>(runs, [](const OwnerRun& run) { return run.stream; });
  out["cpu"] = run_column<std::int32_t>(runs, [](const OwnerRun& run) { return run.cpu; });
  out["pid"] = run_column<std::int32_t>(runs, [](const OwnerRun& run) { return run.pid; });
  out["tid"] = run_column<std::int32_t>(runs, [](const OwnerRun& run) { return run.tid; });
  out["space"] = run_column<std::uint32_t>(runs, [](const OwnerRun& run) { return run.space; });
  out["flags"] = run_column<std::uint8_t>(runs, [](const OwnerRun& run) { return run.flags; });
  return out;
}

py::tuple batch_to_python(std::unique_ptr<tables::columns::Batch> batch) {
  if (batch == nullptr) throw std::bad_alloc();
  py::dict arrays;
  const auto infos = tables::columns::columns_of(batch->table());
  const std::size_t rows = batch->rows();
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (((batch->mask() >> i) & 1) == 0) continue;
    const py::str name(infos[i].name.data(), infos[i].name.size());
    if (batch->has_runs(i)) {
      arrays[name] = py::cast(RunColumn{std::move(batch->cell_runs()), rows});
    } else {
      arrays[name] = batch->is_uniform(i) ? uniform_array(infos[i].type, batch->uniform_value(i), rows)
                                          : owned_array(infos[i].type, batch->buffer(i).release(), rows);
    }
  }
  return py::make_tuple(rows, arrays, runs_to_python(batch->runs()));
}

void register_base(py::module_& module) {
  py::register_exception_translator([](std::exception_ptr raised) {
    try {
      if (raised != nullptr) std::rethrow_exception(raised);
    } catch (const std::bad_alloc&) {
      PyErr_SetString(PyExc_MemoryError, memory_sentence().c_str());
    }
  });
  py::class_<RunColumn>(module, "RunColumn", "A column of uint64 that is kept as runs of equal values.")
      .def("__len__", [](const RunColumn& self) { return self.rows; })
      .def_property_readonly("nbytes", [](const RunColumn& self) { return self.runs.bytes(); })
      .def("array", &array_of, "The values of all rows, in new memory; read-only.");
  module.def(
      "status_text",
      [](int code) {
        const auto status = static_cast<base::Status>(code);
        return py::make_tuple(py::str(std::string(base::status_sentence(status))),
                              py::str(std::string(base::status_remedy(status))));
      },
      py::arg("code"), "The sentence and the remedy of an error code.");
  module.def("make_warning", &make_warning, py::arg("code"), py::arg("arguments"), py::arg("subject"),
             "A TraceWarning of docs/warnings.md; `subject` stands before its sentence, and may be empty.");
}

}  // namespace ptkit::api::python
