// What the rows of one table may take, asked while it grows; shared by all readers of the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "base/memory_left.h"

namespace ptkit::columns {

// Memory is looked at when rows take kFirstLook bytes, and again each time they grew by kMostStep at most:
// what fits into the first look costs nothing.
class RowBudget {
 public:
  static constexpr std::uint64_t kFirstLook = std::uint64_t{16} << 20U;
  static constexpr std::uint64_t kMostStep = std::uint64_t{64} << 20U;

  enum class Answer : std::uint8_t {
    GO_ON,
    COUNT,  // rows to come seem not to fit, going by the bytes of the streams: count them before they are
            // kept
    STOP,   // the next rows do not fit, or more rows were counted than wanted
  };

  struct Input {
    std::uint64_t row_bytes = 0;           // that a row takes while it is read; 0: rows are only counted
    std::uint64_t after_bytes = 0;         // that it takes besides, afterwards
    std::uint64_t most_rows = UINT64_MAX;  // where rows are only counted: STOP above
    bool estimate = true;                  // else never COUNT
    std::function<base::MemoryLeft()> left = [] { return base::memory_left(); };
  };
  RowBudget() = default;
  explicit RowBudget(Input input) : input_(std::move(input)) {}

  void add_streams(std::uint64_t bytes);  // that a reader is going to read
  // One reader's part of the sums. Rows that belong to its place: up to this many bytes of its streams.
  struct Share {
    std::uint64_t rows = 0;
    std::uint64_t side_bytes = 0;
    std::uint64_t place = 0;
    std::uint64_t rows_at_place = 0;
  };
  // A reader now has these rows, errors and gaps of these bytes, and stands here in its streams. Rows may
  // come before the place moves: a segment's rows are taken in several steps.
  [[nodiscard]] Answer ask(Share& share, std::uint64_t rows, std::uint64_t side_bytes, std::uint64_t place);

  [[nodiscard]] std::uint64_t rows() const;           // that are there, or were counted
  [[nodiscard]] std::uint64_t expected_rows() const;  // in the end, going by the bytes of the streams
  [[nodiscard]] base::MemoryLeft left() const { return input_.left(); }

 private:
  [[nodiscard]] std::uint64_t expected() const noexcept;
  [[nodiscard]] Answer look(std::uint64_t taken);

  Input input_;
  mutable std::mutex mutex_;  // guards what follows
  Share sum_;
  std::uint64_t stream_bytes_ = 0;
  std::uint64_t next_look_ = kFirstLook;  // bytes taken
};

}  // namespace ptkit::columns
