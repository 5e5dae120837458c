// Rows that a reader writes where they stay, in a window of the table's memory (Batch::window()).
//
//   main table:  in the window ---- nearly full ----> in memory of its own ---- take() ----> in the window
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "flow/rows/bulk.h"
#include "tables/columns/batch.h"
#include "tables/columns/part_memory.h"

namespace ptkit::tables::columns {

// A pass writes up to kSlackRows rows too far, where the next reader's window begins: the last rows are
// copied into the window in the end.
class RowWindow {
 public:
  static constexpr std::size_t kSlackRows = flow::BulkRoom::kSlack;
  static constexpr std::size_t kLeastRows = 2 * kSlackRows;  // that are worth it

  // Replaces the main table, before its first row, by the window with room for `rows` rows.
  void begin(std::unique_ptr<Batch> window, std::size_t rows, std::unique_ptr<Batch>& main) noexcept;
  // Before a slice. Once the window is nearly full, the main table goes on in other memory. False: out of
  // memory.
  [[nodiscard]] bool leave_if_full(std::unique_ptr<Batch>& main);
  // At the end: the rows in the window; the main table has those that do not fit. Null: all are in the main
  // table.
  [[nodiscard]] std::unique_ptr<Batch> take(std::unique_ptr<Batch>& main);

  [[nodiscard]] bool any() const noexcept { return limit_ != 0 || left_ != nullptr; }
  // Rows that are not in the main table.
  [[nodiscard]] std::size_t rows() const noexcept { return left_ == nullptr ? 0 : left_->rows(); }
  // Limit for the main table's rows in a slice that begins with `rows` rows.
  [[nodiscard]] std::size_t limit(std::size_t rows) const noexcept {
    if (limit_ != 0) return limit_;
    return left_ == nullptr ? SIZE_MAX : rows + kSlackRows;
  }

 private:
  std::size_t limit_ = 0;        // rows at which the window is nearly full; 0: the main table is elsewhere
  std::unique_ptr<Batch> left_;  // the window, once the main table has left it
};

inline void RowWindow::begin(std::unique_ptr<Batch> window, std::size_t rows,
                             std::unique_ptr<Batch>& main) noexcept {
  limit_ = rows - kSlackRows;
  main = std::move(window);
}

inline bool RowWindow::leave_if_full(std::unique_ptr<Batch>& main) {
  if (limit_ == 0 || main->rows() < limit_) return true;
  limit_ = 0;
  if (!main->is_attached()) return true;  // a packet had too many rows, and all have moved
  auto rest = main->successor();
  if (rest == nullptr) return false;
  // Room for the last rows, and for a slice that writes too far.
  const PartMemory part = take_part(*MemoryPool::of_process(), rest->table(), rest->mask(), 3 * kSlackRows);
  if (part.memory == nullptr || !rest->attach(part.columns, part.rows, part.memory)) return false;
  left_ = std::exchange(main, std::move(rest));
  return true;
}

inline std::unique_ptr<Batch> RowWindow::take(std::unique_ptr<Batch>& main) {
  const bool all = limit_ != 0 && main->is_attached();
  if (!all && left_ == nullptr) return nullptr;
  auto none = main->successor();
  if (none == nullptr) return std::move(left_);
  limit_ = 0;
  if (all) return std::exchange(main, std::move(none));
  if (left_->has_room(main->rows()) && left_->append_rows(*main, 0, main->rows())) main = std::move(none);
  return std::move(left_);
}

}  // namespace ptkit::tables::columns
