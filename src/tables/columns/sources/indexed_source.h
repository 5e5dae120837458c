// Decodes only the parts of a stream that may have selected rows, by its index. The rows are the same as
// without index.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "flow/index/index.h"
#include "flow/parallel/segment.h"
#include "tables/columns/rows/row_sink.h"
#include "time/point.h"
#include "time/survey.h"

namespace ptkit::tables::columns {

// Makes a FlowDecoder of a stream; see flow::MakeDecoder.
using DecoderFactory = std::function<std::unique_ptr<flow::FlowDecoder>(
    const trace::Stream& stream, flow::FlowSink& sink, time::TimeTrack* track, const flow::FlowState* from,
    bool ahead)>;

// Segments [first, last) of a stream, decoded one after the other.
struct SegmentRun {
  std::size_t first = 0;
  std::size_t last = 0;
};

class IndexedSource final : public flow::RowSource {
 public:
  struct Input {
    const Request& request;
    const trace::TraceBundle& bundle;
    const trace::Stream& stream;
    const DecoderFactory& make;
    std::shared_ptr<const flow::index::Index> index;
    const flow::index::StreamIndex& of_stream;  // of `index`
    std::optional<SegmentRun> segments;         // earlier ones are left out; later ones come if more is read
    packet::Errata errata;
    bool times = false;         // of rows
    bool follows_time = false;  // code and thread depend on time
  };

  // Null if the index is damaged or of another stream, or if it would save less than `least` of the stream's
  // bytes (0 to 1). References in `input`, and `sink`, must outlive it.
  [[nodiscard]] static std::unique_ptr<IndexedSource> make(Input input, double least, RowSink& sink);

  [[nodiscard]] bool run() override;
  [[nodiscard]] std::uint64_t position() const noexcept override;

 private:
  struct Begin {
    flow::FlowState checkpoint;
    std::unique_ptr<time::TimeTrack> track;       // null: rows have no times
    std::unique_ptr<time::TimeTrack> flow_track;  // null: code and thread do not depend on time
  };
  IndexedSource(Input input, RowSink& sink) : input_(std::move(input)), sink_(sink) {}

  [[nodiscard]] bool plan(double least);
  void prepare();
  [[nodiscard]] bool is_needed(const flow::index::Segment& segment, bool& good) const;
  [[nodiscard]] bool needs_times() const noexcept;
  [[nodiscard]] bool load(const SegmentRun& run, Begin& begin) const;
  [[nodiscard]] std::optional<time::TimeTrack> track_at(std::size_t segment) const;
  void produce(const SegmentRun& run) const;
  [[nodiscard]] bool begin_run();

  Input input_;
  trace::Stream stream_;  // of which produce() makes the bytes
  RowSink& sink_;
  std::optional<time::ClockModel> model_;  // none: times are not needed
  std::optional<time::TimeTrack> like_;    // without queries so far
  std::vector<flow::index::IpSpan> spans_;
  std::vector<SegmentRun> runs_;
  std::size_t next_ = 0;
  Begin begin_;  // start of the current run
  std::unique_ptr<flow::RowSource> decoder_;
};

}  // namespace ptkit::tables::columns
