// Budget for the memory of one table's rows, checked while the table grows. All readers of the table share
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>

#include "base/memory_left.h"

namespace ptkit::tables::columns {

// Free memory is checked when rows take kFirstCheck bytes, and then each time they have grown by kMostStep at
// most. Smaller tables cost no check.
class RowBudget {
 public:
  static constexpr std::uint64_t kFirstCheck = std::uint64_t{16} << 20U;
  static constexpr std::uint64_t kMostStep = std::uint64_t{64} << 20U;

  enum class Answer : std::uint8_t {
    GO_ON,
    // by the bytes of the streams, later rows seem not to fit: count them before they are kept
    COUNT,
    STOP,  // the next rows do not fit, or more rows were counted than allowed
  };

  struct Input {
    std::uint64_t row_bytes = 0;           // bytes of a row while it is read; 0: rows are only counted
    std::uint64_t after_bytes = 0;         // additional bytes of a row afterwards
    std::uint64_t most_rows = UINT64_MAX;  // limit if rows are only counted
    bool estimate = true;                  // false: never COUNT
    std::function<base::MemoryLeft()> left = [] { return base::memory_left(); };
  };
  RowBudget() = default;
  explicit RowBudget(Input input) : input_(std::move(input)) {}

  void add_streams(std::uint64_t bytes);  // for a reader, before it reads
  // One reader's part of the sums. `rows` rows come from the first `position` bytes of its streams.
  struct Share {
    std::uint64_t rows = 0;
    std::uint64_t side_bytes = 0;
    std::uint64_t later_bytes = 0;
    std::uint64_t position = 0;
    std::uint64_t rows_at_position = 0;
  };
  // A reader reports its rows, the bytes of its errors and gaps, and its position in its streams. Rows may
  // come before the position moves: the rows of a segment are taken in several steps.
  [[nodiscard]] Answer report(Share& share, std::uint64_t rows, std::uint64_t side_bytes,
                              std::uint64_t position);
  // For memory that is not made of rows only. `later_bytes`: what is needed besides, whatever
  // follows. Answers GO_ON or STOP.
  [[nodiscard]] Answer report_bytes(Share& share, std::uint64_t bytes, std::uint64_t later_bytes);

  [[nodiscard]] std::uint64_t rows() const;           // number of rows that are kept or counted
  [[nodiscard]] std::uint64_t expected_rows() const;  // extrapolated by the bytes of the streams
  // Bytes of the report_bytes() that answered STOP: a lower bound. 0: none did.
  [[nodiscard]] std::uint64_t refused_bytes() const;
  [[nodiscard]] base::MemoryLeft left() const { return input_.left(); }

 private:
  [[nodiscard]] std::uint64_t expected() const noexcept;
  [[nodiscard]] Answer check_memory(std::uint64_t taken);

  Input input_;
  mutable std::mutex mutex_;  // guards the members below
  Share sum_;
  std::uint64_t stream_bytes_ = 0;
  std::uint64_t next_check_ = kFirstCheck;  // in bytes of rows
  std::uint64_t refused_bytes_ = 0;
};

}  // namespace ptkit::tables::columns
