// Frames of several streams, on several threads: each stream is read by one of them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tables/calls/stream_calls.h"

namespace ptkit::tables::calls {

class CallWorkers {
 public:
  // Makes the reader of a stream, which is the `index`-th one.
  using Make = std::function<std::unique_ptr<StreamCalls>(std::size_t index)>;
  // Takes the frames of a stream's reader. Streams come in their order, one at a time.
  using Take = std::function<void(std::size_t index, StreamCalls& calls)>;
  CallWorkers(std::size_t streams, std::size_t threads, Make make, Take take);
  ~CallWorkers();
  CallWorkers(const CallWorkers&) = delete;
  CallWorkers& operator=(const CallWorkers&) = delete;

  // Waits until all streams were read, or for this time. True: all is done, or there is no more memory.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds time);
  [[nodiscard]] bool out_of_memory() const noexcept { return out_of_memory_; }

 private:
  class Reading;

  void start(std::size_t count);
  void work();
  [[nodiscard]] bool read(StreamCalls& calls);
  void take_in_order(std::unique_lock<std::mutex>& lock);

  Make make_;
  Take take_;
  std::size_t streams_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> stop_{false};
  std::atomic<bool> out_of_memory_{false};
  std::mutex mutex_;  // guards the members below
  std::condition_variable done_;
  std::size_t working_ = 0;
  std::size_t next_take_ = 0;
  bool taking_ = false;
  std::vector<StreamCalls*> reading_;
  std::vector<std::unique_ptr<StreamCalls>> read_;  // by stream; null: not read yet, or taken
  std::vector<std::thread> threads_;
};

}  // namespace ptkit::tables::calls
