// Runs of several streams, on several threads: each stream is read by one of them. Sums do not depend on
// their order.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tables/columns/read/row_budget.h"
#include "tables/feedback/stream_runs.h"

namespace ptkit::tables::feedback {

class RunWorkers {
 public:
  // Makes the reader of a stream, which is the `index`-th one.
  using Make = std::function<std::unique_ptr<StreamRuns>(std::size_t index, FileRuns& runs)>;
  struct Input {
    std::size_t streams = 0;
    std::size_t threads = 1;
    Make make;
    std::function<FileRuns()> empty;
    std::shared_ptr<columns::RowBudget> budget;  // null: memory is not checked
  };
  explicit RunWorkers(Input input);
  ~RunWorkers();
  RunWorkers(const RunWorkers&) = delete;
  RunWorkers& operator=(const RunWorkers&) = delete;

  // Waits until all streams were read, or for this time. True: all is done, or there is no more memory.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds time);
  [[nodiscard]] bool out_of_memory() const noexcept { return out_of_memory_; }
  // The runs of all streams, after wait_for() was true.
  [[nodiscard]] FileRuns& runs() noexcept { return all_; }

 private:
  class Reading;

  void start();
  void work();
  [[nodiscard]] bool read(StreamRuns& stream, const FileRuns& runs, columns::RowBudget::Share& share);
  void stop_at(bool no_memory) noexcept;

  Input input_;
  FileRuns all_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> out_of_memory_{false};
  std::mutex mutex_;  // guards the members below, and `all_`
  std::condition_variable done_;
  std::size_t working_ = 0;
  std::vector<StreamRuns*> reading_;
  std::vector<std::thread> threads_;
};

}  // namespace ptkit::tables::feedback
