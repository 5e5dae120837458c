#include "tables/calls/timeline_files/timeline_facts.h"

#include <algorithm>
#include <map>

#include "time/track.h"

namespace ptkit::tables::calls {
namespace {

// Above the numbers of threads on Linux and Windows, and within 31 bits.
constexpr std::int64_t kUnusedTids = 0x7fff'0000;

}  // namespace

Positions::Positions(const trace::Clock& clock, std::uint64_t first) noexcept
    : clock_(clock), first_(first), begin_ns_(time::tsc_to_ns(clock, first)), is_time_(true) {}

std::uint64_t Positions::ns(std::uint64_t position) const noexcept {
  if (!is_time_) return position;
  const std::int64_t ns = time::tsc_to_ns(clock_, std::max(position, first_));
  return ns > begin_ns_ ? static_cast<std::uint64_t>(ns) - static_cast<std::uint64_t>(begin_ns_) : 0;
}

std::uint64_t Positions::length_ns(std::uint64_t length) const noexcept {
  return is_time_ ? ns(first_ + std::min(length, UINT64_MAX - first_)) : length;
}

FileTracks::FileTracks(const CallTimeline& timeline, const TimelineFacts& facts) : last_unused_(kUnusedTids) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> known;
  for (std::size_t i = 0; i < timeline.tracks().size(); ++i) {
    const Track& track = timeline.tracks()[i];
    const ThreadName& names = facts.threads[i];
    FileTrack made{track.owner.pid, track.owner.tid, i, track.owner.tid != trace::kNoId, names.process, {}};
    bool is_first = true;
    if (made.ids_known) {
      // A thread of a process that is not known is a process of its own.
      if (made.pid == trace::kNoId) made.pid = made.tid;
      const auto [found, is_new] = known.emplace(std::pair(made.pid, made.tid), i);
      is_first = is_new;
      made.first = found->second;
    }
    if (!made.ids_known || !is_first) made.tid = unused_tid();
    if (made.pid == trace::kNoId) made.pid = made.tid;
    made.name = name_of(track, names.thread, is_first);
    tracks_.push_back(std::move(made));
  }
}

std::int64_t FileTracks::unused_tid() noexcept { return --last_unused_; }

std::string FileTracks::name_of(const Track& track, const std::string& thread, bool is_first) {
  if (is_first) return thread;
  return thread +
         (track.stack > 0 ? " (stack " + std::to_string(track.stack + 1)
                          : " (stream " + std::to_string(track.stream)) +
         ")";
}

std::string_view band_name(Band::Kind kind) noexcept {
  constexpr std::array<std::string_view, kBandKinds> kNames = {"untraced", "switched out", "lost"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::array<std::vector<Band>, kBandKinds> bands_by_kind(const Track& track) {
  std::array<std::vector<Band>, kBandKinds> found;
  for (Band band : track.bands) {
    std::vector<Band>& lane = found[static_cast<std::size_t>(band.kind)];
    if (!lane.empty()) band.begin = std::max(band.begin, lane.back().end);
    band.end = std::max(band.begin, band.end);
    lane.push_back(band);
  }
  return found;
}

std::vector<BranchRate> branch_rates(const Track& track, const Positions& positions, std::size_t most) {
  constexpr double kUnit = 1000;
  std::vector<BranchRate> rates;
  const std::vector<BranchCount>& counts = track.counts;
  if (counts.empty() || most == 0) return rates;
  // Of the intervals between points, `most` are spread over all.
  const std::size_t intervals = counts.size() - 1;
  const std::size_t few = std::min(most, intervals);
  for (std::size_t i = 0; i < intervals;) {
    // Points within a nanosecond are one.
    const std::uint64_t begin = positions.ns(counts[i].position);
    std::size_t next = ((i * few / intervals + 1) * intervals + few - 1) / few;
    while (next + 1 < counts.size() && positions.ns(counts[next].position) == begin) ++next;
    const std::uint64_t end = positions.ns(counts[next].position);
    const std::uint64_t branches =
        counts[next].branches - std::min(counts[i].branches, counts[next].branches);
    if (end > begin)
      rates.push_back({begin, kUnit * static_cast<double>(branches) / static_cast<double>(end - begin)});
    i = next;
  }
  if (!rates.empty()) rates.push_back({positions.ns(counts.back().position), 0});
  return rates;
}

std::string_view rate_name(const Positions& positions) noexcept {
  return positions.is_time() ? "branches per us" : "branches per 1000 instructions";
}

std::string_view text_of(CallKind how) noexcept {
  switch (how) {
#define PT_CALL_KIND(name, value, text) \
  case CallKind::name:                  \
    return #name;
#include "tables/calls/stack/kinds.def"
  }
  return {};
}

std::string_view text_of(CallEnd end_how) noexcept {
  switch (end_how) {
#define PT_CALL_END(name, value, text) \
  case CallEnd::name:                  \
    return #name;
#include "tables/calls/stack/kinds.def"
  }
  return {};
}

double covered_share(const Slice& slice) noexcept {
  const std::uint64_t length = slice.end - slice.begin;
  return slice.covered >= length ? 1 : static_cast<double>(slice.covered) / static_cast<double>(length);
}

}  // namespace ptkit::tables::calls
