#include "columns/sources/indexed_source.h"

#include <algorithm>
#include <utility>

#include "columns/sources/phased_source.h"
#include "flow/decoder/state_bytes.h"

namespace ptkit::columns {

std::unique_ptr<IndexedSource> IndexedSource::make(Input input, double least, RowSink& sink) {
  std::unique_ptr<IndexedSource> source(new IndexedSource(std::move(input), sink));
  return source->plan(least) ? std::move(source) : nullptr;
}

// True if the segment may have selected rows, or has errors or gaps.
bool IndexedSource::is_needed(const index::Segment& segment, bool& good) const {
  const Request& request = input_.request;
  if (segment.troubles != 0 && request.side_tables && !request.select_sides) return true;
  const Selection& selection = request.selection;
  if (selection.by_time) {
    if ((segment.flags & index::Segment::TIMES_KNOWN) == 0) return false;
    if (segment.tsc_most < selection.tsc_begin || segment.tsc_least >= selection.tsc_end) return false;
  }
  if (selection.ips.empty()) return true;
  const index::Index::Parts parts = input_.index->parts(segment);
  good = good && parts.good;
  return index::touches(parts.lines, spans_);
}

// Validates the index before there are rows.
bool IndexedSource::plan(double least) {
  const std::vector<index::Segment>& segments = input_.of_stream.segments;
  for (const IpRange& range : input_.request.selection.ips) spans_.push_back({range.first, range.last});
  bool good = true;
  std::uint64_t bytes = 0;
  SegmentRun all = input_.segments.value_or(SegmentRun{0, segments.size()});
  while (needs_times() && all.last < segments.size() && segments[all.last].blob.time == 0) ++all.last;
  for (std::size_t i = all.first; i < all.last && good; ++i) {
    if (!is_needed(segments[i], good)) continue;
    std::size_t first = i;
    // Times can be queried from some segments on only.
    while (needs_times() && first > 0 && segments[first].blob.time == 0) --first;
    if (runs_.empty() || runs_.back().last < first) {
      runs_.push_back({first, i + 1});
    } else {
      first = runs_.back().last;
      runs_.back().last = i + 1;
    }
    bytes += input_.of_stream.end(i) - segments[first].begin;
  }
  const auto size = static_cast<double>(input_.of_stream.size);
  if (!good || static_cast<double>(bytes) > size * (1 - least)) return false;
  for (const SegmentRun& run : runs_) {
    Begin begin;
    if (!load(run, begin)) return false;
    for (std::size_t i = run.first; i < run.last; ++i) {
      if (!index::Index::is_as_indexed(input_.stream.data.bytes(), input_.of_stream, i)) return false;
    }
  }
  // What comes after that is read only if rows are still asked for.
  if (all.last < segments.size()) runs_.push_back({all.last, segments.size()});
  return true;
}

bool IndexedSource::needs_times() const noexcept {
  return (input_.track != nullptr || input_.flow_track != nullptr) && !input_.of_stream.timeless;
}

bool IndexedSource::load(const SegmentRun& run, Begin& begin) const {
  if (run.first == 0) {
    if (needs_times()) begin.track = input_.track;
    begin.flow_track = input_.flow_track;
    return true;
  }
  const index::Segment& segment = input_.of_stream.segments[run.first];
  const index::Index::Parts parts = input_.index->parts(segment);
  if (!parts.good || !flow::from_bytes(parts.checkpoint, input_.stream, input_.bundle, begin.checkpoint) ||
      begin.checkpoint.packets.position != segment.begin) {
    return false;
  }
  if (!needs_times()) return true;
  const auto continues = [&parts](const time::TimeTrack* like, std::unique_ptr<time::TimeTrack>& own,
                                  time::TimeTrack*& track) {
    if (like == nullptr) return true;
    auto found = like->from(parts.time);
    if (!found) return false;
    own = std::make_unique<time::TimeTrack>(std::move(*found));
    track = own.get();
    return true;
  };
  if (!continues(input_.flow_track, begin.own_flow_track, begin.flow_track)) return false;
  return continues(input_.track, begin.own_track, begin.track);
}

// load() has found the state valid.
std::unique_ptr<time::TimeSurvey> IndexedSource::survey_at(const SegmentRun& run) const {
  if (run.first != 0) {
    const index::Segment& segment = input_.of_stream.segments[run.first];
    return std::make_unique<time::TimeSurvey>(*input_.track->from(input_.index->parts(segment).time));
  }
  const trace::Configuration& configuration = input_.bundle.configuration;
  return std::make_unique<time::TimeSurvey>(input_.stream.data.bytes(), configuration.clock,
                                            packet::errata_for(configuration.cpu), input_.stream.losses);
}

bool IndexedSource::begin_run() {
  const SegmentRun& run = runs_[next_++];
  const std::vector<index::Segment>& segments = input_.of_stream.segments;
  begin_ = {};
  if (!load(run, begin_)) return false;
  sink_.go_on_at(segments[run.first].instructions, segments[run.first].order, begin_.track);
  auto decoder = input_.make(sink_, begin_.flow_track, run.first == 0 ? nullptr : &begin_.checkpoint, false);
  const bool to_end = run.last == segments.size();
  if (sink_.takes_phases() && begin_.track != nullptr) {
    const std::uint64_t end = to_end ? PhaseStretch::kNoPsb : segments[run.last].psb;
    const auto survey = survey_at(run);
    decoder_ = phased(std::move(decoder), input_.request, input_.stream, *survey,
                      {segments[run.first].psb, end}, sink_);
    return true;
  }
  if (!to_end) decoder->stop_after_psb_above(segments[run.last].psb - 1);
  decoder_ = std::move(decoder);
  return true;
}

bool IndexedSource::run() {
  if (decoder_ == nullptr && (next_ == runs_.size() || !begin_run())) return false;
  if (decoder_->run()) return true;
  decoder_.reset();
  return next_ < runs_.size();
}

std::uint64_t IndexedSource::position() const noexcept {
  if (decoder_ != nullptr) return decoder_->position();
  return next_ == 0 ? 0 : input_.of_stream.end(runs_[next_ - 1].last - 1);
}

}  // namespace ptkit::columns
