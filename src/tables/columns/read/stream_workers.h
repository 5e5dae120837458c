// Reads streams on several threads, each stream by one of them, into one table in the order of the streams.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "tables/columns/read/reader.h"

namespace ptkit::tables::columns {

// States of a reader, in the order of the readers:
//
//   reading ---> READ ---> its rows are next in the table, and are copied there ---> its memory is free
//
// The copy is made by the thread that made the last reader before it READ, right after its own rows.
// Meanwhile other threads read on. So little more than the table is in memory, unless streams are few and
// large.
//
// If the number of rows of every reader is known, each has its window of the table from the start: it writes
// its rows there (Batch::window()), and only the last ones are copied. Where a number turns out wrong, the
// rows from that reader on are copied out of their windows.
class StreamWorkers {
 public:
  // The readers must outlive this.
  StreamWorkers(std::vector<TableReader*> readers, std::size_t threads);
  ~StreamWorkers();
  StreamWorkers(const StreamWorkers&) = delete;
  StreamWorkers& operator=(const StreamWorkers&) = delete;

  // Waits for all rows, or for this time. True: all is done, or nothing more can be done.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds time);
  // Makes threads stop soon.
  void cancel() noexcept;
  [[nodiscard]] bool out_of_memory() const noexcept { return out_of_memory_; }

  // After wait_for() was true, and unless out_of_memory().
  [[nodiscard]] std::unique_ptr<Batch> take_rows();  // null: out of memory
  [[nodiscard]] std::unique_ptr<Batch> take_errors() { return std::move(errors_); }
  [[nodiscard]] std::unique_ptr<Batch> take_gaps() { return std::move(gaps_); }
  [[nodiscard]] std::size_t rows_copied() const noexcept { return rows_copied_; }

 private:
  struct Rows {
    std::unique_ptr<Batch> window;  // rows that are in the table; null: none
    std::unique_ptr<Batch> main;    // the other rows
    std::unique_ptr<Batch> errors;
    std::unique_ptr<Batch> gaps;
    bool read = false;

    [[nodiscard]] std::size_t count() const noexcept {
      return main->rows() + (window == nullptr ? 0 : window->rows());
    }
  };
  void make_windows();
  void start(std::size_t count);
  void work();
  [[nodiscard]] bool read(std::size_t index);
  [[nodiscard]] bool add_read_rows();
  [[nodiscard]] bool add_rows(std::size_t index, Rows& rows, std::size_t& row);
  [[nodiscard]] bool put_aside(Rows& rows);
  void expect_rows(std::size_t added_rows);

  std::vector<TableReader*> readers_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> out_of_memory_{false};

  std::mutex mutex_;  // guards the members below
  std::condition_variable done_;
  std::size_t working_ = 0;
  std::vector<Rows> rows_;
  std::size_t next_added_ = 0;  // the first reader that the table has no rows of
  std::uint64_t bytes_added_ = 0;
  std::uint64_t bytes_total_ = 0;
  std::unique_ptr<Batch> errors_;
  std::unique_ptr<Batch> gaps_;

  // Copies share it; a table that grows may move, and needs it alone.
  std::shared_mutex growth_;
  std::unique_ptr<Batch> all_;

  std::size_t rows_copied_ = 0;
  std::vector<std::size_t> window_ends_;  // by reader: end of its rows in the table; empty: not known
  std::unique_ptr<Batch> aside_;          // rows from the first reader on that did not fit its window

  std::vector<std::thread> threads_;
};

}  // namespace ptkit::tables::columns
