#include "tables/columns/rows/row_times.h"

namespace ptkit::tables::columns {
namespace {

template <Column... COLUMNS>
[[nodiscard]] bool wants_any(const Batch& batch) noexcept {
  return (batch.wants(COLUMNS) || ...);
}

}  // namespace

bool rows_have_time(const Batch& batch) noexcept {
  switch (batch.table()) {
    case TableId::edges:
      return false;
    case TableId::branches:
      return wants_any<Column::branches_tsc, Column::branches_tsc_error, Column::branches_tsc_source,
                       Column::branches_flags>(batch);
    case TableId::blocks:
      return wants_any<Column::blocks_tsc, Column::blocks_tsc_error, Column::blocks_tsc_source,
                       Column::blocks_flags>(batch);
    case TableId::instructions:
      return wants_any<Column::instructions_tsc, Column::instructions_tsc_error,
                       Column::instructions_tsc_source, Column::instructions_flags>(batch);
    default:
      return true;
  }
}

}  // namespace ptkit::tables::columns
