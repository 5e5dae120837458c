// Rows that are selected by time, and counts of edges by phases of time. A stream is cut into stretches at
// PSBs. Where no row has a selected time, the decoder makes no rows; where all edges are of one phase, they
// are counted in bulk. In the other stretches each row is selected by its time. The rows are those of a
// decoder that selects all rows by their times.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "flow/decoder/decoder.h"
#include "tables/columns/rows/row_sink.h"
#include "time/survey.h"

namespace ptkit::tables::columns {

// Rows up to the PSB+ at `psb` (kNoPsb: up to the end).
struct PhaseStretch {
  static constexpr std::uint64_t kNoPsb = UINT64_MAX;

  std::uint64_t psb = kNoPsb;
  Phase phase;
};

// Cuts a stream at PSBs. `begin`: where decoding begins; `end`: a PSB at which it ends, or kNoPsb. `survey`
// is at `begin`. `all_sides`: all errors and gaps need their times, those outside of the phases, too. None if
// times depend on rows of other phases, because time goes back.
[[nodiscard]] std::optional<std::vector<PhaseStretch>> cut_into_phases(base::Bytes stream,
                                                                       time::TimeSurvey& survey,
                                                                       std::span<const std::uint64_t> limits,
                                                                       std::uint64_t begin, std::uint64_t end,
                                                                       bool all_sides);

class PhasedSource final : public flow::RowSource {
 public:
  // `ends`: rows after the last phase are not needed, not even errors.
  PhasedSource(std::unique_ptr<flow::FlowDecoder> decoder, std::vector<PhaseStretch> stretches, bool ends,
               RowSink& sink);

  [[nodiscard]] bool run() override;
  [[nodiscard]] std::uint64_t position() const noexcept override { return decoder_->position(); }

 private:
  std::unique_ptr<flow::FlowDecoder> decoder_;
  std::vector<PhaseStretch> stretches_;
  std::size_t next_ = 0;
  bool begun_ = false;  // stretch `next_`
  RowSink& sink_;
};

// Offsets of PSBs.
struct PsbRange {
  std::uint64_t begin = 0;
  std::uint64_t end = PhaseStretch::kNoPsb;
};

// Selects rows by time, from `range.begin`, where the decoder and the survey are, to `range.end`.
[[nodiscard]] std::unique_ptr<flow::RowSource> phased(std::unique_ptr<flow::FlowDecoder> decoder,
                                                      const Request& request, const trace::Stream& stream,
                                                      time::TimeSurvey& survey, PsbRange range,
                                                      RowSink& sink);

}  // namespace ptkit::tables::columns
