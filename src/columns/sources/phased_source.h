// Counts edges by phases of time. Where all rows up to a PSB are of one phase they are counted in bulk;
// around the limits of phases each row is counted by its time. The counts are those of rows that are counted
// one by one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "columns/row_sink.h"
#include "flow/decoder/decoder.h"
#include "time/survey.h"

namespace ptkit::columns {

// Rows up to the PSB+ at `psb` (kNoPsb: up to the end).
struct PhaseStretch {
  static constexpr std::uint64_t kNoPsb = UINT64_MAX;

  std::uint64_t psb = kNoPsb;
  Phase phase;
};

// Cuts a stream at PSBs. `begin`: where decoding begins; `end`: a PSB at which it ends, or kNoPsb. `survey`
// is at `begin`. None if times of rows depend on rows of other phases, because time goes back.
[[nodiscard]] std::optional<std::vector<PhaseStretch>> cut_into_phases(base::Bytes stream,
                                                                       time::TimeSurvey& survey,
                                                                       std::span<const std::uint64_t> limits,
                                                                       std::uint64_t begin,
                                                                       std::uint64_t end);

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

// Counts the edges of a request by time, from `range.begin`, where the decoder and the survey are, to
// `range.end`.
[[nodiscard]] std::unique_ptr<flow::RowSource> phased(std::unique_ptr<flow::FlowDecoder> decoder,
                                                      const Request& request, const trace::Stream& stream,
                                                      time::TimeSurvey& survey, PsbRange range,
                                                      RowSink& sink);

}  // namespace ptkit::columns
