// Speculative decoding of a part of a stream, from a PSB on, with a predicted state.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "flow/decoder/decoder.h"
#include "flow/decoder/flow_state.h"
#include "time/track.h"

namespace ptkit::flow {

// Makes a decoder of one stream, from a checkpoint on (null: from the start); see FlowDecoder. `track`: the
// time that code and thread depend on; null if they do not.
using MakeDecoder = std::function<std::unique_ptr<FlowDecoder>(FlowSink& sink, time::TimeTrack* track,
                                                               const FlowState* from, bool speculative)>;

// True if segments of its streams can be decoded speculatively.
[[nodiscard]] bool can_speculate(const trace::TraceBundle& bundle) noexcept;

inline constexpr std::uint64_t kNoPsb = ~std::uint64_t{0};

// Result of a segment. Its rows are valid if is_valid().
struct SegmentResult {
  bool usable = false;  // false: the segment has to be decoded again
  FlowState begin;
  FlowState end;
  bool at_stream_end = false;
  SpeculationDeps deps;
  // Of the track at `begin`, if there is one: TimeTrack::state_at() of its PSB.
  std::vector<std::uint8_t> begin_times;
};

// True if the rows are valid: the decoder of the preceding segment ended in the state `actual`, with `track`
// (null: code and thread do not depend on time).
[[nodiscard]] bool is_valid(const SegmentResult& segment, const FlowState& actual,
                            const time::TimeTrack* track);

// Decodes from the end of the first PSB+ after `psb` to the end of the first PSB+ after `next_psb` (kNoPsb:
// to the end of the stream). The decoder warms up on the PSB interval before, from `psb` on, and emits no
// rows for it.
class SegmentDecoder {
 public:
  // All references must outlive the object. `predicted`: a checkpoint of this stream. `track`: it
  // begins at `psb`; null if code and thread do not depend on time.
  SegmentDecoder(const MakeDecoder& make, const trace::Stream& stream, FlowSink& sink, std::uint64_t psb,
                 std::uint64_t next_psb, const FlowState& predicted,
                 std::unique_ptr<time::TimeTrack> track = nullptr);
  SegmentDecoder(const SegmentDecoder&) = delete;
  SegmentDecoder& operator=(const SegmentDecoder&) = delete;

  // Continues until the sink is full or a slice of work is done. False at the end.
  [[nodiscard]] bool run();
  // Ends the segment at the next PSB+, because it has enough rows.
  void stop_at_next_psb() noexcept;
  [[nodiscard]] const SegmentResult& result() const noexcept {
    return result_;
  }  // valid once run() returned false
  // The track at the segment's end, to go on from there.
  [[nodiscard]] std::unique_ptr<time::TimeTrack> take_track() noexcept { return std::move(track_); }

 private:
  // Discards all rows, and makes run() return from time to time.
  class DiscardSink final : public FlowSink, private BulkSink {
   public:
    [[nodiscard]] bool full() const override { return ++packets_ % kPackets == 0; }
    [[nodiscard]] BulkSink* bulk() override { return this; }

   private:
    static constexpr unsigned kPackets = 4096;
    [[nodiscard]] bool open(BulkRoom& room) override {
      room.kind = BulkRows::NONE;
      return true;
    }
    void close(const BulkRoom&) override {}
    void add_edges(std::span<const EdgeCount>, std::uint32_t, std::uint32_t) override {}

    mutable unsigned packets_ = 0;
  };

  bool warm_up();
  bool decode();

  const MakeDecoder& make_;
  FlowSink& sink_;
  std::uint64_t next_psb_;
  DiscardSink discard_;
  bool warming_up_ = true;
  std::unique_ptr<time::TimeTrack> track_;
  std::unique_ptr<FlowDecoder> decoder_;
  SegmentResult result_;
};

}  // namespace ptkit::flow
