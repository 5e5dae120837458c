// Sums over the rows of a table of calls, without another decode.
#include <functional>

#include "api/python/bindings.h"
#include "tables/calls/sums/function_totals.h"
#include "tables/calls/sums/table_frames.h"

namespace ptkit::api::python {
namespace {

using tables::calls::FrameIndex;

// The arrays stay alive as long as the dictionary has them.
template <typename T>
tables::calls::CellView<T> view_of(const py::dict& columns, const char* name, std::size_t rows) {
  const auto array = py::cast<py::array>(columns[name]);
  if (!array.dtype().equal(py::dtype::of<T>()) || array.ndim() != 1 ||
      static_cast<std::size_t>(array.shape(0)) != rows)
    throw py::type_error(std::string("column ") + name + " is not a column of calls");
  return {static_cast<const std::byte*>(array.data()), array.strides(0)};
}

tables::calls::CallRows rows_of(const py::dict& columns, std::size_t count) {
  tables::calls::CallRows rows;
  rows.rows = count;
  const auto take = [&](auto& view, const char* name) {
    view = view_of<std::decay_t<decltype(view[0])>>(columns, name, count);
  };
#define PT_CALL_CELL(name) take(rows.name, #name);
#include "tables/calls/sums/sums.def"
  take(rows.function, "function");
  if (columns.contains("inline_level")) take(rows.inline_level, "inline_level");
  take(rows.space, "space");
  return rows;
}

// None: the rows do not suffice.
py::object sums(
    const FrameIndex& notes, const py::dict& columns, std::size_t count,
    const std::function<std::unique_ptr<tables::columns::Batch>(const tables::calls::TableFrames&)>& sum_up,
    bool (*suffices)(const tables::calls::TableFrames&)) {
  const tables::calls::CallRows rows = rows_of(columns, count);
  std::unique_ptr<tables::columns::Batch> batch;
  bool is_enough = false;
  {
    const py::gil_scoped_release release;
    const tables::calls::TableFrames frames(notes, rows);
    is_enough = suffices(frames);
    if (is_enough) batch = sum_up(frames);
  }
  if (!is_enough) return py::none();
  if (batch == nullptr) throw std::bad_alloc();
  return batch_to_python(std::move(batch));
}

py::object sum_functions(const FrameIndex& notes, const py::dict& columns, std::size_t rows,
                         const std::string& by, bool tails_replaced) {
  const auto group = tables::calls::by_of(by);
  const auto tails = tails_replaced ? tables::calls::Tails::REPLACED : tables::calls::Tails::NESTED;
  const bool is_plain = group == tables::calls::By::FUNCTION && !tails_replaced;
  const auto sum_up = [&](const tables::calls::TableFrames& frames) {
    return frames.functions(group, tails, tables::columns::kAllColumns);
  };
  if (is_plain)
    return sums(notes, columns, rows, sum_up, [](const tables::calls::TableFrames&) { return true; });
  return sums(notes, columns, rows, sum_up,
              [](const tables::calls::TableFrames& frames) { return frames.is_whole(); });
}

py::object sum_tree(const FrameIndex& notes, const py::dict& columns, std::size_t rows) {
  return sums(
      notes, columns, rows,
      [](const tables::calls::TableFrames& frames) { return frames.tree(tables::columns::kAllColumns); },
      [](const tables::calls::TableFrames& frames) { return frames.has_callers(); });
}

// The least kind is 1, so that 0 stands for rows of none.
py::tuple sum_parts(const FrameIndex& notes, const py::dict& columns, std::size_t rows, const py::dict& more,
                    std::size_t kinds) {
  const tables::calls::CallRows found = rows_of(columns, rows);
  const auto kind_of = view_of<std::uint8_t>(more, "kind", rows);
  std::vector<tables::calls::TableFrames::Part> parts;
  {
    const py::gil_scoped_release release;
    parts = tables::calls::TableFrames(notes, found).parts_of(kind_of, kinds);
  }
  const auto size = static_cast<py::ssize_t>(parts.size());
  py::array_t<std::int64_t> counts(size);
  py::array_t<std::int64_t> instructions(size);
  py::array_t<std::int64_t> first(size);
  for (py::ssize_t i = 0; i < size; ++i) {
    const auto& part = parts[static_cast<std::size_t>(i)];
    counts.mutable_at(i) = static_cast<std::int64_t>(part.count);
    instructions.mutable_at(i) = static_cast<std::int64_t>(part.self_instructions);
    first.mutable_at(i) = part.count == 0 ? -1 : static_cast<std::int64_t>(part.first);
  }
  return py::make_tuple(counts, instructions, first);
}

py::array_t<std::uint8_t> find_outermost(const FrameIndex& notes, const py::dict& columns, std::size_t rows,
                                         const py::dict& more) {
  const tables::calls::CallRows found = rows_of(columns, rows);
  const auto chosen = view_of<std::uint8_t>(more, "chosen", rows);
  std::vector<std::uint8_t> outer;
  {
    const py::gil_scoped_release release;
    outer = tables::calls::TableFrames(notes, found).outermost(chosen);
  }
  return py::array_t<std::uint8_t>(static_cast<py::ssize_t>(outer.size()), outer.data());
}

// A row of the table of functions for each number, without sums.
py::tuple name_functions(const FrameIndex& notes) {
  auto batch = tables::calls::function_rows(notes.functions());
  if (batch == nullptr) throw std::bad_alloc();
  return batch_to_python(std::move(batch));
}

}  // namespace

void register_call_notes(py::module_& module) {
  py::list cells;
#define PT_CALL_CELL(name) cells.append(#name);
#include "tables/calls/sums/sums.def"
  module.attr("CALL_CELLS") = py::tuple(cells);
  py::class_<FrameIndex, std::shared_ptr<FrameIndex>>(module, "CallNotes",
                                                      "Facts about frames that a table of calls lacks.")
      .def("functions", &sum_functions, py::arg("columns"), py::arg("rows"), py::kw_only(), py::arg("by"),
           py::arg("tails_replaced"), "Sums over the frames of each group. None: frames are missing.")
      .def("tree", &sum_tree, py::arg("columns"), py::arg("rows"),
           "Sums over the frames of each calling context. None: callers are missing.")
      .def("parts", &sum_parts, py::arg("columns"), py::arg("rows"), py::arg("more"), py::arg("kinds"),
           "By kind and function: frames, their own instructions, and the first row that has one.")
      .def("outermost", &find_outermost, py::arg("columns"), py::arg("rows"), py::arg("more"),
           "Rows that are chosen, and of which no caller is.")
      .def("names", &name_functions, "A row of the table of functions for each number of a function.");
}

}  // namespace ptkit::api::python
