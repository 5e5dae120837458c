// Frames of the rows of a table of calls, for sums over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tables/calls/frame_index.h"
#include "tables/calls/stack/frame_groups.h"
#include "tables/calls/stack/stack_machine.h"
#include "tables/columns/batch.h"

namespace ptkit::tables::calls {

// Cells of a column in memory of someone else. One that is uniform has a stride of 0.
template <typename T>
struct CellView {
  const std::byte* first = nullptr;
  std::ptrdiff_t stride = 0;

  [[nodiscard]] T operator[](std::size_t row) const noexcept {
    T value{};
    std::memcpy(&value, first + static_cast<std::ptrdiff_t>(row) * stride, sizeof value);
    return value;
  }
};

struct CallRows {
  std::size_t rows = 0;
#define PT_CALL_CELL(name) CellView<tables::columns::Cell<tables::columns::Column::calls_##name>> name;
#include "tables/calls/sums/sums.def"
  CellView<std::uint32_t> function, space;
  CellView<std::uint8_t> inline_level;  // tables without inlined calls do not have it

  // A count, as the core has it: without a sign.
  [[nodiscard]] static std::uint64_t count(const CellView<std::int64_t>& cells, std::size_t row) noexcept {
    return static_cast<std::uint64_t>(cells[row]);
  }
};

class TableFrames {
 public:
  // `notes` are of the table that the rows are from. They and the columns must outlive this.
  TableFrames(const FrameIndex& notes, const CallRows& rows);

  // All frames that were read have one row.
  [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }
  // Each frame with a parent comes with it.
  [[nodiscard]] bool has_callers() const noexcept { return has_callers_; }
  // Rows of the table of functions; only By::FUNCTION and Tails::NESTED unless is_whole(). Null: out of
  // memory.
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> functions(By by, Tails tails,
                                                                  tables::columns::ColumnMask mask) const;
  // Rows of the table of calling contexts, if has_callers(). Null: out of memory.
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> tree(tables::columns::ColumnMask mask) const;

  // Frames of one function in the calls of one kind.
  struct Part {
    std::uint64_t count = 0;
    std::uint64_t self_instructions = 0;
    std::size_t first = kNone;  // row of the first call that has one
  };
  // By kind and function, `functions` of each kind: the rows of a kind, and those above them up to the next
  // row of any kind. `kind_of`: of each row; 0: none.
  [[nodiscard]] std::vector<Part> parts_of(const CellView<std::uint8_t>& kind_of, std::size_t kinds) const;
  // By row, 1 if it is in the column `chosen`, and no frame below it is.
  [[nodiscard]] std::vector<std::uint8_t> outermost(const CellView<std::uint8_t>& chosen) const;

  static constexpr std::size_t kNone = SIZE_MAX;

 private:
  [[nodiscard]] std::size_t row_at(std::size_t position) const noexcept {
    return order_.empty() ? position : order_[position];
  }
  [[nodiscard]] std::size_t row_of(std::uint64_t id) const noexcept;
  [[nodiscard]] std::size_t caller_of(std::size_t row) const noexcept;
  [[nodiscard]] Frame frame_at(std::size_t row) const noexcept;
  [[nodiscard]] std::vector<std::size_t> callers_first() const;

  const FrameIndex& notes_;
  CallRows rows_;
  std::vector<std::size_t> order_;  // rows by id; empty: they are in this order
  bool is_whole_ = false;
  bool has_callers_ = true;
};

}  // namespace ptkit::tables::calls
