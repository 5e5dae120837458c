// Speculative decoding of one stream on several threads. Workers decode segments from predicted states, and
// the segments are joined in order, so that the rows are the same as without threads.
//
//            claim()              run()              join()
//   (none) ---------> DECODING ---------> DONE --- prediction valid ---> rows are taken
//                                          |
//                                          `----- mispredicted -------> decoded again in turn
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "flow/parallel/segment.h"
#include "tables/columns/rows/row_sink.h"

namespace ptkit::tables::columns {

class SpeculativeSource final : public flow::RowSource {
 public:
  // Size of half of the smallest stream that is cut.
  static constexpr std::size_t kSmallestSegment = std::size_t{64} << 10U;

  struct Input {
    const Request& request;
    std::uint32_t index = 0;
    const trace::Stream& stream;
    flow::MakeDecoder make;
    // Without queries so far; null: code and thread do not depend on time.
    std::unique_ptr<time::TimeTrack> track;
    std::size_t threads = 2;          // with the thread that calls run()
    std::size_t segment = 0;          // bytes, approximately; 0: automatic
    bool times = false;               // `sink` has a track
    std::size_t part = 0;             // rows of a part that is read
    std::uint64_t room = UINT64_MAX;  // limit for the bytes of the segments' rows
  };
  // References in `input`, and `sink`, must outlive this.
  SpeculativeSource(Input input, RowSink& sink);
  ~SpeculativeSource() override;
  SpeculativeSource(const SpeculativeSource&) = delete;
  SpeculativeSource& operator=(const SpeculativeSource&) = delete;

  [[nodiscard]] bool run() override;
  [[nodiscard]] std::uint64_t position() const noexcept override;

  // Number of segments with rows that were taken, and of segments that were decoded again.
  struct Figures {
    std::size_t taken = 0;
    std::size_t again = 0;
  };
  [[nodiscard]] const Figures& figures() const noexcept { return figures_; }

 private:
  // One segment. The alignment avoids false sharing between threads.
  struct alignas(256) Job {
    Job(const SpeculativeSource& owner, std::size_t number, const flow::FlowState& predicted,
        std::unique_ptr<time::TimeTrack> track);
    std::size_t number;
    RowSink sink;
    flow::SegmentDecoder decoder;
    bool done = false;  // guarded by mutex_ of the source
  };

  void start();
  void start_threads();
  void work();
  [[nodiscard]] Job* claim(std::size_t threads);
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
  [[nodiscard]] bool is_valid(const Job& job) const noexcept;
  void decode_next();
  [[nodiscard]] std::uint64_t begin_turn(std::size_t number);
  void decode_up_to(std::uint64_t psb);
  void wait_or_decode();

  Input input_;
  RowSink& sink_;
  std::atomic<bool> stop_{false};

  // Used by the thread that calls run().
  std::unique_ptr<time::TimeTrack> track_;      // of decoder_; null as input_.track
  std::unique_ptr<flow::FlowDecoder> decoder_;  // decodes segments in turn
  bool started_ = false;
  bool at_stop_ = false;  // `actual_` is the state before segment `next_`
  flow::FlowState actual_;
  std::size_t next_ = 1;         // number of the next segment in stream order
  Job* taking_ = nullptr;        // segment with a valid prediction; its rows are taken
  bool filling_times_ = false;   // times are filled in
  Job* waiting_job_ = nullptr;   // segment that this thread decodes while it waits
  unsigned mispredictions_ = 0;  // in succession
  Figures figures_;

  std::mutex mutex_;  // guards the members below
  std::condition_variable room_;
  std::condition_variable done_;
  std::vector<std::uint64_t> psbs_{0};  // PSBs where the warm-up of segments begins, as far as searched
  time::CarriedTime carried_;           // at the turn, if there is a track
  std::list<Job> jobs_;
  std::size_t next_claim_ = 1;
  std::size_t segment_ = 0;
  std::uint64_t most_bytes_ = 0;  // limit for one segment's rows
  flow::FlowState predicted_;
  std::size_t turn_ = 1;  // equal to next_

  std::vector<std::thread> threads_;
};

}  // namespace ptkit::tables::columns
