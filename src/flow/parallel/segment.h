// Speculative decoding of a part of a stream, from a PSB on, with a predicted state.
#pragma once

#include <functional>
#include <memory>

#include "flow/decoder/checkpoint.h"
#include "flow/decoder/decoder.h"

namespace ptkit::flow {

// Makes a decoder of one stream, from a checkpoint on (null: from the start); see FlowDecoder.
using MakeDecoder =
    std::function<std::unique_ptr<FlowDecoder>(FlowSink& sink, const Checkpoint* from, bool speculative)>;

// True if segments of the stream can be decoded speculatively.
[[nodiscard]] bool can_speculate(const trace::TraceBundle& bundle, const trace::Stream& stream) noexcept;

inline constexpr std::uint64_t kNoPsb = ~std::uint64_t{0};

// Result of a segment. Its rows are valid if `begin` is equivalent() to the actual state there, which the
// decoder of the preceding segment has.
struct Segment {
  bool usable = false;  // false: the segment has to be decoded again
  Checkpoint begin;
  Checkpoint end;
  bool at_stream_end = false;
  SpeculationDeps deps;
};

// Decodes from the end of the first PSB+ after `psb` to the end of the first PSB+ after `next_psb` (kNoPsb:
// to the end of the stream). The decoder warms up on the PSB interval before, from `psb` on, and emits no
// rows for it.
class SegmentDecoder {
 public:
  // All references must outlive the object. `predicted`: a checkpoint of this stream.
  SegmentDecoder(const MakeDecoder& make, const trace::Stream& stream, FlowSink& sink, std::uint64_t psb,
                 std::uint64_t next_psb, const Checkpoint& predicted);
  SegmentDecoder(const SegmentDecoder&) = delete;
  SegmentDecoder& operator=(const SegmentDecoder&) = delete;

  // Continues until the sink is full or a slice of work is done. False at the end.
  [[nodiscard]] bool run();
  // Ends the segment at the next PSB+, because it has enough rows.
  void stop_at_next_psb() noexcept;
  [[nodiscard]] const Segment& result() const noexcept { return result_; }  // valid once run() returned false

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
    void add_edges(std::span<const EdgeCount>, std::uint32_t) override {}

    mutable unsigned packets_ = 0;
  };

  bool warm_up();
  bool decode();

  const MakeDecoder& make_;
  FlowSink& sink_;
  std::uint64_t next_psb_;
  DiscardSink discard_;
  bool warming_up_ = true;
  std::unique_ptr<FlowDecoder> decoder_;
  Segment result_;
};

}  // namespace ptkit::flow
