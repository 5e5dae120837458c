// A timeline that a test makes by hand.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tables/calls/timeline/call_timeline.h"
#include "tables/calls/timeline_files/timeline_files.h"

namespace ptkit::tables::calls {

class MadeTimeline final : public CallTimeline {
 public:
  explicit MadeTimeline(TimelineAxis axis = TimelineAxis::INSTRUCTIONS) : axis_(axis) {}

  // Slices after this are of a new track.
  Track& add_track(std::int64_t pid, std::int64_t tid) {
    tracks_.emplace_back().owner = {trace::kNoId, pid, tid, trace::kAnySpace};
    rows_.emplace_back();
    return tracks_.back();
  }
  // In pre-order: what a slice has above it follows it.
  Slice& add(std::uint32_t depth, std::uint32_t function, std::uint64_t begin, std::uint64_t end) {
    Slice slice;
    slice.begin = begin;
    slice.end = end;
    slice.function = function;
    slice.covered = end - begin;
    slice.instructions = end - begin;
    slice.branches = (end - begin) / 4;
    slice.flags = FRAME_EXACT;
    slice.how = CallKind::CALL;
    slice.end_how = CallEnd::RETURN;
    rows_.back().emplace_back(depth, slice);
    return rows_.back().back().second;
  }
  // Drops the slices of the last track but the first ones.
  void keep(std::size_t slices) { rows_.back().resize(slices); }

  [[nodiscard]] TimelineAxis axis() const noexcept override { return axis_; }
  [[nodiscard]] std::span<const Track> tracks() const noexcept override { return tracks_; }
  void visit(std::size_t track, SliceVisitor& visitor) const override {
    std::vector<const Slice*> open;
    const auto close = [&](std::size_t depth) {
      while (open.size() > depth) {
        const Slice* const slice = open.back();
        open.pop_back();
        visitor.end(*slice, static_cast<std::uint32_t>(open.size()));
      }
    };
    for (const auto& [depth, slice] : rows_[track]) {
      close(depth);
      visitor.begin(slice, depth);
      open.push_back(&slice);
    }
    close(0);
  }

 private:
  TimelineAxis axis_;
  std::vector<Track> tracks_;
  std::vector<std::vector<std::pair<std::uint32_t, Slice>>> rows_;
};

// Names for as many functions and the timeline's tracks.
inline TimelineFacts made_facts(const MadeTimeline& timeline, std::size_t functions) {
  TimelineFacts facts;
  for (std::size_t i = 0; i < functions; ++i) {
    const std::string name = "f" + std::to_string(i);
    facts.functions.push_back({name, i % 2 == 0 ? name : name + "(int)", "code.so"});
  }
  for (const Track& track : timeline.tracks())
    facts.threads.push_back({"program", "thread " + std::to_string(track.owner.tid)});
  facts.notes = {{"axis", "instructions"}};
  return facts;
}

using WriteTimeline = bool (*)(const CallTimeline&, const TimelineFacts&, ByteSink&);

// A whole file.
inline std::string written(WriteTimeline write, const CallTimeline& timeline, const TimelineFacts& facts) {
  std::string bytes;
  ByteSink sink([&](std::string_view chunk) {
    bytes += chunk;
    return true;
  });
  return write(timeline, facts, sink) ? bytes : std::string();
}

}  // namespace ptkit::tables::calls
