// The schema of tables as dictionaries. ptkit.support.schema builds classes from them.
#include "api/python/bindings.h"

namespace ptkit::api::python {
namespace {

using tables::columns::RowKind;
using tables::columns::rows_of;
using tables::columns::SchemaRow;

py::str text(std::string_view view) { return py::str(view.data(), view.size()); }

const char* dtype_of(tables::columns::CellType type) noexcept {
  constexpr const char* kNames[] = {"uint8", "uint16", "uint32", "uint64", "int32", "int64"};
  return kNames[static_cast<std::size_t>(type)];
}

py::list column_rows(std::span<const SchemaRow> infos) {
  py::list rows;
  for (const auto& info : infos) {
    rows.append(py::make_tuple(text(info.name), dtype_of(info.type), text(info.unit), text(info.doc)));
  }
  return rows;
}

py::list derived_rows(std::span<const SchemaRow> infos) {
  py::list rows;
  for (const auto& info : infos) rows.append(py::make_tuple(text(info.name), info.mask, text(info.doc)));
  return rows;
}

py::dict table_row(tables::columns::TableId table) {
  py::dict row;
  row["columns"] = column_rows(tables::columns::columns_of(table));
  row["runs"] = column_rows(rows_of<RowKind::RUN>(table));
  row["derived"] = derived_rows(rows_of<RowKind::DERIVED>(table));
  row["run_derived"] = derived_rows(rows_of<RowKind::RUN_DERIVED>(table));
  py::dict validity;
  for (const SchemaRow& one : rows_of<RowKind::VALID>(table)) validity[text(one.name)] = text(one.derived);
  row["validity"] = validity;
  py::list on_demand;
  for (const SchemaRow& one : rows_of<RowKind::ON_DEMAND>(table)) on_demand.append(text(one.name));
  row["on_demand"] = on_demand;
  return row;
}

}  // namespace

void register_schema(py::module_& module) {
  module.def(
      "schema",
      [] {
        py::dict tables;
        for (std::size_t table = 0; table < tables::columns::kTableCount; ++table) {
          const auto id = static_cast<tables::columns::TableId>(table);
          tables[text(tables::columns::table_name(id))] = table_row(id);
        }
        return tables;
      },
      "Columns, runs, derived columns and validity of every table.");
}

}  // namespace ptkit::api::python
