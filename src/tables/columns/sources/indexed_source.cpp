#include "tables/columns/sources/indexed_source.h"

#include <algorithm>
#include <utility>

#include "flow/decoder/state_bytes.h"
#include "tables/columns/sources/phased_source.h"
#include "time/calibrate.h"

namespace ptkit::tables::columns {

// Stream and clock model that runs are decoded with.
void IndexedSource::prepare() {
  stream_ = input_.stream;
  stream_.data = input_.stream.data.in_parts();
  if (!needs_times()) return;
  const trace::Clock& clock = input_.bundle.configuration.clock;
  model_ = time::calibrate(input_.stream.data, stream_.losses, clock, input_.errata);
  like_.emplace(stream_.data.bytes(), *model_, input_.errata, stream_.losses);
}

std::unique_ptr<IndexedSource> IndexedSource::make(Input input, double least, RowSink& sink) {
  std::unique_ptr<IndexedSource> source(new IndexedSource(std::move(input), sink));
  return source->plan(least) ? std::move(source) : nullptr;
}

// True if the segment may have selected rows, or has errors or gaps.
bool IndexedSource::is_needed(const flow::index::Segment& segment, bool& good) const {
  const Request& request = input_.request;
  if (segment.troubles != 0 && request.side_tables && !request.select_sides) return true;
  const Selection& selection = request.selection;
  if (selection.by_time) {
    if ((segment.flags & flow::index::Segment::TIMES_KNOWN) == 0) return false;
    if (segment.tsc_most < selection.tsc_begin || segment.tsc_least >= selection.tsc_end) return false;
  }
  if (selection.ips.empty()) return true;
  const flow::index::Index::Parts parts = input_.index->parts(segment);
  good = good && parts.good;
  return flow::index::touches(parts.lines, spans_);
}

// Validates the index before there are rows.
bool IndexedSource::plan(double least) {
  const std::vector<flow::index::Segment>& segments = input_.of_stream.segments;
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
  prepare();
  for (const SegmentRun& run : runs_) {
    Begin begin;
    if (!load(run, begin)) return false;
    for (std::size_t i = run.first; i < run.last; ++i) {
      if (!flow::index::Index::is_as_indexed(input_.stream.data, input_.of_stream, i)) return false;
    }
  }
  // Later segments are read only if rows are still asked for: mostly some of the next segment.
  for (std::size_t count = 1; all.last < segments.size(); count *= 2) {
    const std::size_t first = all.last;
    all.last = std::min(first + count, segments.size());
    while (needs_times() && all.last < segments.size() && segments[all.last].blob.time == 0) ++all.last;
    runs_.push_back({first, all.last});
  }
  return true;
}

bool IndexedSource::needs_times() const noexcept {
  return (input_.times || input_.follows_time) && !input_.of_stream.timeless;
}

bool IndexedSource::load(const SegmentRun& run, Begin& begin) const {
  if (run.first != 0) {
    const flow::index::Segment& segment = input_.of_stream.segments[run.first];
    const flow::index::Index::Parts parts = input_.index->parts(segment);
    if (!parts.good || !flow::from_bytes(parts.checkpoint, stream_, input_.bundle, begin.checkpoint) ||
        begin.checkpoint.packets.position != segment.begin) {
      return false;
    }
  }
  if (!needs_times()) return true;
  for (auto* track : {&begin.track, &begin.flow_track}) {
    if (!(track == &begin.track ? input_.times : input_.follows_time)) continue;
    auto found = track_at(run.first);
    if (!found) return false;
    *track = std::make_unique<time::TimeTrack>(std::move(*found));
  }
  return true;
}

// None: the index is damaged.
std::optional<time::TimeTrack> IndexedSource::track_at(std::size_t segment) const {
  if (segment == 0) return time::TimeTrack(stream_.data.bytes(), *model_, input_.errata, stream_.losses);
  return like_->from(input_.index->parts(input_.of_stream.segments[segment]).time);
}

// Bytes of the stream that a run reads. Times are limited by packets behind it, up to a PSB+ with a time.
void IndexedSource::produce(const SegmentRun& run) const {
  constexpr std::uint64_t kBefore = 4096;
  const std::vector<flow::index::Segment>& segments = input_.of_stream.segments;
  std::size_t last = run.last;
  while (needs_times() && last < segments.size() && segments[last].blob.time == 0) ++last;
  last = std::min(last + 1, segments.size() - 1);
  const std::uint64_t psb = segments[run.first].psb;
  static_cast<void>(input_.stream.data.part(static_cast<std::size_t>(psb - std::min(psb, kBefore)),
                                            static_cast<std::size_t>(input_.of_stream.end(last))));
}

bool IndexedSource::begin_run() {
  const SegmentRun& run = runs_[next_++];
  const std::vector<flow::index::Segment>& segments = input_.of_stream.segments;
  produce(run);
  Begin begin;
  if (!load(run, begin)) return false;
  sink_.go_on_at(segments[run.first].instructions, segments[run.first].order, begin.track.get());
  begin_ = std::move(begin);
  auto decoder = input_.make(stream_, sink_, begin_.flow_track.get(),
                             run.first == 0 ? nullptr : &begin_.checkpoint, false);
  const bool to_end = run.last == segments.size();
  if (sink_.takes_phases() && begin_.track != nullptr) {
    const std::uint64_t end = to_end ? PhaseStretch::kNoPsb : segments[run.last].psb;
    time::TimeSurvey survey(std::move(*track_at(run.first)));  // load() has found the state valid
    decoder_ =
        phased(std::move(decoder), input_.request, stream_, survey, {segments[run.first].psb, end}, sink_);
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

}  // namespace ptkit::tables::columns
