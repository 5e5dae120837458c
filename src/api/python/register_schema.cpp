// The schema of tables as dictionaries. ptkit.support.schema builds classes from them.
#include "api/python/bindings.h"

namespace ptkit::api::python {
namespace {

py::str text(std::string_view view) { return py::str(view.data(), view.size()); }

const char* dtype_of(tables::columns::CellType type) noexcept {
  constexpr const char* kNames[] = {"uint8", "uint16", "uint32", "uint64", "int32", "int64"};
  return kNames[static_cast<std::size_t>(type)];
}

py::list column_rows(std::span<const tables::columns::ColumnInfo> infos) {
  py::list rows;
  for (const auto& info : infos) {
    rows.append(py::make_tuple(text(info.name), dtype_of(info.type), text(info.unit), text(info.doc)));
  }
  return rows;
}

py::list derived_rows(std::span<const tables::columns::DerivedInfo> infos) {
  py::list rows;
  for (const auto& info : infos) rows.append(py::make_tuple(text(info.name), info.mask, text(info.doc)));
  return rows;
}

py::dict table_row(tables::columns::TableId table) {
  py::dict row;
  row["columns"] = column_rows(tables::columns::columns_of(table));
  row["runs"] = column_rows(tables::columns::runs_of(table));
  row["derived"] = derived_rows(tables::columns::derived_of(table));
  row["run_derived"] = derived_rows(tables::columns::run_derived_of(table));
  py::dict validity;
  for (const auto& info : tables::columns::validity_of(table))
    validity[text(info.column)] = text(info.derived);
  row["validity"] = validity;
  py::list on_demand;
  for (const auto& info : tables::columns::on_demand_of(table)) on_demand.append(text(info.column));
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
