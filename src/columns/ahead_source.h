// Decodes one stream on several threads: segments are decoded ahead of their turn and joined in order, so
// that the rows are those of a decode from the beginning.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "columns/row_sink.h"
#include "flow/segment.h"

namespace ptkit::columns {

class AheadSource final : public flow::RowSource {
 public:
  // The smallest stream to be cut, in halves.
  static constexpr std::size_t kSmallestSegment = std::size_t{64} << 10U;

  struct Input {
    const Request& request;
    std::uint32_t index = 0;
    const trace::Stream& stream;
    flow::MakeDecoder make;
    std::size_t threads = 2;                                              // with the one that calls run()
    std::size_t segment = 0;                                              // bytes, about; 0: by itself
    bool times = false;                                                   // that `sink` has a track for
    std::shared_ptr<MemoryPool> memory = std::make_shared<MemoryPool>();  // for rows of segments
    std::size_t part = 0;                                                 // rows of the parts that are read
    std::uint64_t room = UINT64_MAX;  // bytes that rows of segments may take
  };
  // What `input` refers to and `sink` must outlive this.
  AheadSource(Input input, RowSink& sink);
  ~AheadSource() override;
  AheadSource(const AheadSource&) = delete;
  AheadSource& operator=(const AheadSource&) = delete;

  [[nodiscard]] bool run() override;
  [[nodiscard]] std::uint64_t position() const noexcept override;

  // Segments whose rows were taken, and those that were decoded again.
  struct Figures {
    std::size_t taken = 0;
    std::size_t again = 0;
  };
  [[nodiscard]] const Figures& figures() const noexcept { return figures_; }

 private:
  // One segment. Threads write to those of others all the time: apart by more than a line of any cache.
  struct alignas(256) Job {
    Job(const AheadSource& owner, std::size_t number, const flow::Checkpoint& likely);
    std::size_t number;
    RowSink sink;
    flow::SegmentDecoder decoder;
    bool done = false;  // guarded by mutex_ of the source
  };

  void start();
  void start_threads();
  void work();
  [[nodiscard]] Job* claim(std::size_t threads_ahead);
  void work_on(Job& job, bool once);
  void finish(Job& job);
  [[nodiscard]] std::size_t smallest() const noexcept;
  [[nodiscard]] std::size_t share() const noexcept;
  void adapt(Job& job);
  [[nodiscard]] std::uint64_t psb(std::size_t number);
  [[nodiscard]] Job* find(std::size_t number) noexcept;
  void drop(Job* job);

  [[nodiscard]] bool decode();
  [[nodiscard]] bool join();
  [[nodiscard]] bool take();
  [[nodiscard]] bool is_right(const Job& job) const noexcept;
  void go_on();
  [[nodiscard]] std::uint64_t begin_turn(std::size_t number);
  void decode_up_to(std::uint64_t psb);
  void wait_or_help();

  Input input_;
  RowSink& sink_;
  std::atomic<bool> stop_{false};

  // Of the thread that calls run().
  std::unique_ptr<flow::FlowDecoder> decoder_;  // of what is decoded in its turn
  bool started_ = false;
  bool at_stop_ = false;  // `real_` is the state before segment `next_`
  flow::Checkpoint real_;
  std::size_t next_ = 1;   // the segment whose turn comes
  Job* taking_ = nullptr;  // its rows are right
  bool timing_ = false;    // times are being filled in
  Job* own_ = nullptr;     // that this thread decodes while it would have to wait
  unsigned misses_ = 0;    // one behind the other
  Figures figures_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable room_;
  std::condition_variable done_;
  std::vector<std::uint64_t> psbs_{0};  // where segments begin to learn, as far as they were looked for
  std::list<Job> jobs_;
  std::size_t next_claim_ = 1;
  std::size_t segment_ = 0;
  std::uint64_t most_bytes_ = 0;  // of one segment's rows
  flow::Checkpoint likely_;
  std::size_t turn_ = 1;  // = next_

  std::vector<std::thread> threads_;
};

}  // namespace ptkit::columns
