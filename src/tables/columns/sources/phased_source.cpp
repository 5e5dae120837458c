#include "tables/columns/sources/phased_source.h"

#include <algorithm>

#include "packet/decoder.h"

namespace ptkit::tables::columns {
namespace {

constexpr std::uint64_t kNoPsb = PhaseStretch::kNoPsb;
// A PSB+ has its timing packets within so many bytes.
constexpr std::uint64_t kHeaderBytes = 128;

// Times of the rows from one PSB to another. The part before has the times of its first PSB+.
struct Part {
  std::uint64_t psb = kNoPsb;  // where it ends
  time::TimeSurvey::Limits limits;
};

std::vector<Part> parts_of(base::Bytes stream, time::TimeSurvey& survey, std::uint64_t begin,
                           std::uint64_t end) {
  std::vector<Part> parts;
  const std::uint64_t last = std::min<std::uint64_t>(end, stream.size());
  for (std::uint64_t psb = begin; psb < last;) {
    psb = packet::find_psb(stream, psb + kHeaderBytes);
    if (psb >= last) psb = end;
    const std::uint64_t until = psb == kNoPsb ? stream.size() : psb + kHeaderBytes;
    parts.push_back({psb, survey.read_to(std::min<std::uint64_t>(until, stream.size()))});
  }
  return parts;
}

// The phase of all rows of a part. A row may look back over the PSB, at the part before.
Phase phase_of(const Part& part, const Part* before, std::span<const std::uint64_t> limits) {
  if (!part.limits.any) return Phase::none();
  if (before == nullptr || !before->limits.any) return Phase::by_row();  // some rows have no time
  const std::uint64_t least = std::min(part.limits.least_tsc, before->limits.least_tsc);
  const auto of = [&](std::uint64_t tsc) { return std::upper_bound(limits.begin(), limits.end(), tsc); };
  const auto first = of(least);
  if (first != of(part.limits.most_tsc)) return Phase::by_row();
  if (first == limits.begin() || first == limits.end())
    return Phase::none(static_cast<std::size_t>(first - limits.begin()));
  return Phase::in_bulk(static_cast<std::size_t>(first - limits.begin() - 1));
}

}  // namespace

std::optional<std::vector<PhaseStretch>> cut_into_phases(base::Bytes stream, time::TimeSurvey& survey,
                                                         std::span<const std::uint64_t> limits,
                                                         std::uint64_t begin, std::uint64_t end,
                                                         bool all_sides) {
  if (survey.needs_all_queries()) return std::nullopt;
  const std::vector<Part> parts = parts_of(stream, survey, begin, end);
  std::vector<Phase> phases;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    phases.push_back(phase_of(parts[i], i == 0 ? nullptr : &parts[i - 1], limits));
    // The time of a row is not below that of the row before. The rows of one more part are asked for their
    // times, so that those that are skipped matter only if time goes back.
    if (all_sides && parts[i].limits.go_back) return std::nullopt;
    if (i == 0 || !phases[i].rows || phases[i - 1].rows) continue;
    phases[i - 1] = Phase::by_row();
    if (i >= 2 && parts[i - 1].limits.least_low < parts[i - 2].limits.most_tsc) return std::nullopt;
  }
  std::vector<PhaseStretch> stretches;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (stretches.empty() || stretches.back().phase != phases[i]) stretches.push_back({kNoPsb, phases[i]});
    stretches.back().psb = parts[i].psb;
  }
  return stretches;
}

PhasedSource::PhasedSource(std::unique_ptr<flow::FlowDecoder> decoder, std::vector<PhaseStretch> stretches,
                           bool ends, RowSink& sink)
    : decoder_(std::move(decoder)), stretches_(std::move(stretches)), sink_(sink) {
  while (ends && !stretches_.empty() && stretches_.back().phase.is_none()) stretches_.pop_back();
}

bool PhasedSource::run() {
  if (next_ == stretches_.size()) return false;
  const PhaseStretch& stretch = stretches_[next_];
  if (!begun_) {
    begun_ = true;
    // Where the decoder cannot stop at the PSB, rows after it are counted one by one.
    const bool last = stretch.psb == kNoPsb;
    sink_.begin_phase(stretch.phase, last ? kNoPsb : stretch.psb + kHeaderBytes);
    if (!last) decoder_->stop_after_psb_above(stretch.psb - 1);
  }
  if (decoder_->run()) return true;
  if (!decoder_->stopped()) return false;
  const std::uint64_t at = decoder_->position();
  while (next_ < stretches_.size() && stretches_[next_].psb < at) ++next_;
  begun_ = false;
  return next_ < stretches_.size();
}

std::unique_ptr<flow::RowSource> phased(std::unique_ptr<flow::FlowDecoder> decoder, const Request& request,
                                        const trace::Stream& stream, time::TimeSurvey& survey, PsbRange range,
                                        RowSink& sink) {
  std::vector<std::uint64_t> limits = request.bins;
  if (limits.empty() || request.by_instructions())
    limits = {request.selection.tsc_begin, request.selection.tsc_end};
  const bool needs_end = request.marks_limits();  // the last limit has a mark behind the last phase
  const bool ends = !needs_end && (request.select_sides || !request.side_tables);
  auto stretches = cut_into_phases(stream.data.bytes(), survey, limits, range.begin, range.end, !ends);
  if (!stretches) stretches = {{range.end, Phase::by_row()}};
  return std::make_unique<PhasedSource>(std::move(decoder), std::move(*stretches), ends, sink);
}

}  // namespace ptkit::tables::columns
