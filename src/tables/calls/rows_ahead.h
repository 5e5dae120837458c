// Rows of a stream that a thread of its own reads, a few parts ahead of the thread that takes them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "tables/columns/read/reader.h"

namespace ptkit::tables::calls {

class RowsAhead {
 public:
  using Step = tables::columns::TableReader::Step;
  struct Part {
    Step step = Step::NO_MEMORY;
    std::unique_ptr<tables::columns::Batch> rows;  // null: `step` says why, as errors and gaps
    std::unique_ptr<tables::columns::Batch> errors;
    std::unique_ptr<tables::columns::Batch> gaps;
  };

  // Parts have so many rows. Throws std::system_error without a thread. `reader` must outlive this, and
  // others use it once the last part was taken; but for cancel().
  RowsAhead(tables::columns::TableReader& reader, std::size_t rows);
  ~RowsAhead();
  RowsAhead(const RowsAhead&) = delete;
  RowsAhead& operator=(const RowsAhead&) = delete;

  // The next part. None: it is not read after a few milliseconds.
  [[nodiscard]] std::optional<Part> take();

 private:
  void read();
  [[nodiscard]] Part read_part();
  // False: no more parts are wanted.
  [[nodiscard]] bool put(Part part);

  static constexpr std::size_t kMostParts = 4;

  tables::columns::TableReader& reader_;
  std::size_t rows_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<Part> parts_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ptkit::tables::calls
