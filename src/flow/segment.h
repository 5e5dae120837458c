// A part of a stream, decoded ahead of its turn: from a PSB on, with an assumption of what came before.
#pragma once

#include <functional>
#include <memory>

#include "flow/checkpoint.h"
#include "flow/decoder.h"

namespace ptkit::flow {

// Makes a decoder of one stream, from a checkpoint on (null: from the beginning); see FlowDecoder.
using MakeDecoder =
    std::function<std::unique_ptr<FlowDecoder>(FlowSink& sink, const Checkpoint* from, bool ahead)>;

// Does what is executed, or who executes it, depend on time? Such a stream is followed from its beginning
// only.
[[nodiscard]] bool changes_with_time(const trace::TraceBundle& bundle, const trace::Stream& stream) noexcept;
// Can a decoder begin with an assumption at all?
[[nodiscard]] bool can_begin_ahead(const trace::TraceBundle& bundle, const trace::Stream& stream) noexcept;

inline constexpr std::uint64_t kNoPsb = ~std::uint64_t{0};

// What came of it: rows that are right if `begin` is equivalent() to the state that the decoder of what comes
// before has there.
struct Segment {
  bool usable = false;  // false: nothing came of it
  Checkpoint begin;
  Checkpoint end;
  bool at_stream_end = false;
  Reliance relied;
};

// Decodes what lies between the first PSB+ behind the PSB at `psb` and the first one behind `next_psb`
// (kNoPsb: the end of the stream). The PSB+ at `psb` itself and what follows it serve to learn the state:
// they give no rows.
class SegmentDecoder {
 public:
  // All references must outlive this. `likely`: a checkpoint of this stream.
  SegmentDecoder(const MakeDecoder& make, const trace::Stream& stream, FlowSink& sink, std::uint64_t psb,
                 std::uint64_t next_psb, const Checkpoint& likely);
  SegmentDecoder(const SegmentDecoder&) = delete;
  SegmentDecoder& operator=(const SegmentDecoder&) = delete;

  // Works until the sink is full or much was done; false when there is nothing more.
  [[nodiscard]] bool run();
  // There are enough rows: ends it at the next PSB+.
  void stop_soon() noexcept;
  [[nodiscard]] const Segment& result() const noexcept { return result_; }  // once run() gave false

 private:
  // Takes no rows, and lets run() look around.
  class Silent final : public FlowSink, private BulkSink {
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

  bool learn();
  bool decode();

  const MakeDecoder& make_;
  FlowSink& sink_;
  std::uint64_t next_psb_;
  Silent silent_;
  bool learning_ = true;
  std::unique_ptr<FlowDecoder> decoder_;
  Segment result_;
};

}  // namespace ptkit::flow
