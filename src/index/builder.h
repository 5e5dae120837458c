// Makes the index of a stream: decodes it once, segments at the same time where there are threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "flow/segment.h"
#include "index/index.h"
#include "index/segment_sink.h"

namespace ptkit::index {

class StreamBuilder {
 public:
  static constexpr std::size_t kSegment = std::size_t{1} << 20U;  // bytes of trace, about

  struct Input {
    const trace::TraceBundle& bundle;
    const trace::Stream& stream;
    packet::Errata errata;
    flow::MakeDecoder make;  // empty: nothing can be decoded, and there is one segment
    std::size_t segment = kSegment;
    std::size_t threads = 1;
    const std::atomic<bool>& cancelled;
  };
  explicit StreamBuilder(Input input);

  // Nothing if it was cancelled. std::bad_alloc may pass.
  [[nodiscard]] std::optional<BuiltStream> build();

  // Bytes that were decoded; from any thread.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_.load(std::memory_order_relaxed); }

 private:
  // A segment that was decoded.
  struct Done {
    std::optional<flow::Checkpoint> begin;  // none: the stream's beginning
    flow::Checkpoint end;
    bool at_stream_end = false;
    std::unique_ptr<SegmentSink> sink;
    std::uint64_t bytes_sum = 0;
  };
  // The same with an assumption, or what came of the attempt.
  struct Ahead {
    flow::Segment result;
    std::unique_ptr<SegmentSink> sink;
    std::uint64_t bytes_sum = 0;
  };

  void find_psbs();
  void work();
  void work_locked(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool may_take_turn() const;
  [[nodiscard]] bool may_claim() const;
  void take_turn(Ahead* ahead);
  [[nodiscard]] Ahead decode_ahead(std::size_t number, const flow::Checkpoint& likely) const;
  [[nodiscard]] Done decode(SegmentSink::Rows rows) const;
  void add_packet_ips(SegmentSink& sink, packet::DecoderState state, std::uint64_t end) const;
  [[nodiscard]] std::uint64_t sum_of(std::uint64_t begin, std::uint64_t end) const;
  void add(Done done);
  void add_times();

  Input input_;
  base::Bytes bytes_;
  std::vector<std::uint64_t> psbs_{0};  // where segments are to begin, about; the last one is kNoPsb
  std::atomic<std::uint64_t> position_{0};

  // Of the thread whose turn it is.
  std::optional<flow::Checkpoint> real_;  // where the next segment begins; none: at the stream's beginning
  BuiltStream built_;
  std::vector<std::uint64_t> psb_ends_;  // by segment: where the PSB+ before it ends
  std::vector<std::uint64_t> oldest_;    // by segment: Place::since of a row
  std::uint64_t instructions_ = 0;
  std::uint64_t blocks_ = 0;
  std::uint64_t order_ = 0;

  std::mutex mutex_;  // guards what follows
  std::condition_variable moved_;
  std::map<std::size_t, Ahead> ahead_;
  flow::Checkpoint likely_;
  std::size_t turn_ = 0;  // in psbs_
  bool turn_taken_ = false;
  std::size_t next_claim_ = 1;
  bool ended_ = false;
  bool out_of_memory_ = false;
};

}  // namespace ptkit::index
