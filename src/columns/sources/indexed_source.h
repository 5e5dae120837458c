// Decodes only the parts of a stream that may have selected rows, by its index. The rows are the same as
// without index.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "columns/rows/row_sink.h"
#include "flow/parallel/segment.h"
#include "index/index.h"
#include "time/survey.h"

namespace ptkit::columns {

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
    flow::MakeDecoder make;
    std::shared_ptr<const index::Index> index;
    const index::StreamIndex& of_stream;  // of `index`
    std::optional<SegmentRun> segments;   // earlier ones are left out; later ones come if more is read
    // Without queries so far.
    time::TimeTrack* track = nullptr;       // null: times are not selected
    time::TimeTrack* flow_track = nullptr;  // null: code and thread do not depend on time
  };

  // Null if the index is damaged or of another stream, or if it would save less than `least` of the stream's
  // bytes (0 to 1). References in `input`, and `sink`, must outlive it.
  [[nodiscard]] static std::unique_ptr<IndexedSource> make(Input input, double least, RowSink& sink);

  [[nodiscard]] bool run() override;
  [[nodiscard]] std::uint64_t position() const noexcept override;

 private:
  struct Begin {
    flow::FlowState checkpoint;
    std::unique_ptr<time::TimeTrack> own_track;
    std::unique_ptr<time::TimeTrack> own_flow_track;
    time::TimeTrack* track = nullptr;
    time::TimeTrack* flow_track = nullptr;
  };
  IndexedSource(Input input, RowSink& sink) : input_(std::move(input)), sink_(sink) {}

  [[nodiscard]] bool plan(double least);
  [[nodiscard]] bool is_needed(const index::Segment& segment, bool& good) const;
  [[nodiscard]] bool needs_times() const noexcept;
  [[nodiscard]] bool load(const SegmentRun& run, Begin& begin) const;
  [[nodiscard]] std::unique_ptr<time::TimeSurvey> survey_at(const SegmentRun& run) const;
  [[nodiscard]] bool begin_run();

  Input input_;
  RowSink& sink_;
  std::vector<index::IpSpan> spans_;
  std::vector<SegmentRun> runs_;
  std::size_t next_ = 0;
  Begin begin_;  // start of the current run
  std::unique_ptr<flow::RowSource> decoder_;
};

}  // namespace ptkit::columns
