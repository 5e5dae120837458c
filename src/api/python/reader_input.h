// Options of a read, from Python's types to those of the core.
#pragma once

#include <string>
#include <vector>

#include "api/python/bindings.h"
#include "tables/columns/read/reader.h"
#include "tables/columns/request.h"

namespace ptkit::api::python {

struct ReadOptions {
  std::vector<std::uint32_t> streams;
  std::string engine;
  std::string resync;
  std::size_t threads = 1;
  bool ticks = false;
};

// Raises an error if there is no such stream, or the engine cannot read it.
[[nodiscard]] tables::columns::TableReader::Input reader_input(std::shared_ptr<Session> session,
                                                               ReadOptions options);

// Raises TypeError for values of other types.
[[nodiscard]] tables::columns::Selection selection_of(const py::dict& given);

// The columns of a table with these names.
[[nodiscard]] tables::columns::ColumnMask mask_of(tables::columns::TableId table,
                                                  const std::vector<std::string>& names);

}  // namespace ptkit::api::python
