// Builds the index of a stream: decodes it once, with segments in parallel if there are threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "flow/index/index.h"
#include "flow/index/segment_sink.h"
#include "flow/parallel/segment.h"

namespace ptkit::flow::index {

class StreamBuilder {
 public:
  static constexpr std::size_t kSegment = std::size_t{1} << 20U;  // bytes of trace, approximately

  struct Input {
    const trace::TraceBundle& bundle;
    const trace::Stream& stream;
    packet::Errata errata;
    flow::MakeDecoder make;  // empty: nothing can be decoded, and there is one segment
    std::size_t segment = kSegment;
    std::size_t threads = 1;
    const std::atomic<bool>& cancelled;
    std::atomic<std::uint64_t>* decoded = nullptr;  // rises by the bytes that are decoded; may be null
  };
  explicit StreamBuilder(Input input);

  // Empty if cancelled. std::bad_alloc may pass.
  [[nodiscard]] std::optional<BuiltStream> build();

 private:
  // A decoded segment.
  struct Done {
    std::optional<flow::FlowState> begin;  // none: the start of the stream
    flow::FlowState end;
    bool at_stream_end = false;
    std::unique_ptr<SegmentSink> sink;
    std::uint64_t bytes_sum = 0;
  };
  // A segment that was decoded from a predicted state.
  struct Speculative {
    flow::SegmentResult result;
    std::unique_ptr<time::TimeTrack> track;  // at its end; null as track_
    std::unique_ptr<SegmentSink> sink;
    std::uint64_t bytes_sum = 0;
  };

  void find_psbs();
  void work();
  void work_locked(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool may_take_turn() const;
  [[nodiscard]] bool may_claim() const;
  void take_turn(Speculative* speculative);
  [[nodiscard]] Speculative decode_speculatively(std::size_t number, const flow::FlowState& predicted,
                                                 std::unique_ptr<time::TimeTrack> track) const;
  [[nodiscard]] std::unique_ptr<time::TimeTrack> track_from(std::uint64_t psb,
                                                            const time::CarriedTime& carried) const;
  [[nodiscard]] Done decode(SegmentSink::Rows rows);
  void add_packet_ips(SegmentSink& sink, packet::DecoderState state, std::uint64_t end) const;
  [[nodiscard]] std::uint64_t sum_of(std::uint64_t begin, std::uint64_t end) const;
  void add(Done done);
  void add_times();

  Input input_;
  base::Bytes bytes_;
  std::vector<std::uint64_t> psbs_{0};  // approximate starts of segments; the last one is kNoPsb

  std::unique_ptr<time::TimeTrack> like_;  // without queries; null: code and thread do not depend on time

  // Only for the thread that has the turn (turn_taken_).
  std::unique_ptr<time::TimeTrack> track_;  // at `actual_`; null as like_
  std::optional<flow::FlowState> actual_;   // start of the next segment; none: the start of the stream
  BuiltStream built_;
  std::vector<std::uint64_t> psb_ends_;  // by segment: end of the PSB+ before it
  std::vector<std::uint64_t> oldest_;    // by segment: smallest StreamSpan::since of its rows

  std::mutex mutex_;  // guards the members below
  std::condition_variable moved_;
  std::map<std::size_t, Speculative> speculative_;
  time::CarriedTime carried_;  // at the turn, if there is a track
  flow::FlowState predicted_;
  std::size_t turn_ = 0;  // index in psbs_
  bool turn_taken_ = false;
  std::size_t next_claim_ = 1;
  bool ended_ = false;
  bool out_of_memory_ = false;
};

}  // namespace ptkit::flow::index
