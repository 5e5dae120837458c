// Frames of streams as a timeline: their trees on tracks of threads, whole or reduced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tables/calls/code/function_table.h"
#include "tables/calls/timeline/call_timeline.h"
#include "tables/calls/timeline/slice_sink.h"
#include "tables/calls/timeline/slice_walk.h"

namespace ptkit::tables::calls {

class FrameTimeline final : public CallTimeline {
 public:
  // What was merged, changed and left out.
  struct Facts {
    bool is_whole = true;  // nothing was merged or left out to reduce it
    std::uint64_t slices = 0;
    std::uint64_t calls = 0;             // of all slices
    std::uint64_t merged_slices = 0;     // those of several calls
    std::uint64_t merged_calls = 0;      // of these
    std::uint64_t longest_merged = 0;    // no merged slice is longer; in ticks or instructions
    std::size_t slowest = 0;             // calls of each function that are whole
    std::uint64_t deepest = UINT32_MAX;  // callers of a slice; what has more is left out
    std::uint64_t too_deep = 0;          // calls that are left out
    std::uint64_t without_times = 0;     // calls that are left out
    std::uint64_t clamped = 0;           // slices of which positions were changed, so that they nest
    std::uint64_t merged_bands = 0;      // that became a part of another one
    std::uint64_t without_counts = 0;    // threads of which each stack counts branches
  };

  // `most`: slices of each stream; 0: whole.
  FrameTimeline(TimelineAxis axis, std::size_t most)
      : axis_(axis), most_(most), slowest_(most / 2), reducer_(nodes_, slowest_) {}
  FrameTimeline(const FrameTimeline&) = delete;
  FrameTimeline& operator=(const FrameTimeline&) = delete;

  // Takes the slices of the next stream. Frames have numbers from `first_id` on; numbers of functions are
  // those of `to`.
  void add(SliceSink& sink, std::uint32_t stream, std::uint64_t first_id, const FunctionTable& from,
           FunctionTable& to);
  // After the last stream: puts roots on tracks, and reduces. False: it was stopped before.
  bool finish(const SliceReducer::GoOn& go_on = {});

  [[nodiscard]] TimelineAxis axis() const noexcept override { return axis_; }
  [[nodiscard]] std::span<const Track> tracks() const noexcept override { return tracks_; }
  void visit(std::size_t track, SliceVisitor& visitor) const override;
  [[nodiscard]] SliceWalk walk(std::size_t track) const { return SliceWalk(nodes_, lists_[track].nodes); }
  // Of the tracks [first, last).
  [[nodiscard]] std::size_t slices(std::size_t first, std::size_t last) const;
  // Reduces to so many slices, if that is possible. False: it was stopped before. There are fewer slices than
  // there were then, and they nest.
  bool reduce(std::size_t most, const SliceReducer::GoOn& go_on = {}) { return reduce_to(most, most, go_on); }
  // Goes through all slices.
  [[nodiscard]] Facts facts() const;
  [[nodiscard]] std::uint64_t bytes() const noexcept;

 private:
  // Threads that have another stream's key are others.
  using Key = std::pair<ThreadKey, std::uint32_t>;  // the stream's number
  // What one stream has of a thread.
  struct Part {
    std::vector<SliceList> roots;
    BandLists bands;
    BranchPoints branches;
    std::uint32_t stream = 0;
    std::uint64_t begin = UINT64_MAX;  // of its first root, and the last end
    std::uint64_t end = 0;
  };
  struct Thread {
    Owner owner;
    std::vector<Part> parts;
    bool has_stacks = false;
  };
  struct Root {
    std::uint64_t begin = 0;
    NodeNumber node = kNoNode;
    std::uint32_t stream = 0;
  };
  [[nodiscard]] std::uint32_t thread_of(const Owner& owner, std::uint32_t stream);
  void renumber(NodeNumber first, std::uint64_t first_id, const FunctionTable& from, FunctionTable& to);
  void lay_out(Thread& thread);
  void add_sides(Thread& thread, Track& track);
  void note(const SliceSink& sink);
  void find_slowest(std::size_t most);
  bool reduce_to(std::size_t most, std::size_t slices, const SliceReducer::GoOn& go_on);
  [[nodiscard]] std::vector<SliceList*> lists();
  void compact();

  TimelineAxis axis_;
  std::size_t most_;
  SliceNodes nodes_;
  SlowestCalls slowest_;
  SliceReducer reducer_;
  std::map<Key, std::uint32_t> numbers_;
  std::vector<Thread> threads_;  // until finish()
  std::vector<Track> tracks_;
  std::vector<SliceList> lists_;                   // of each track
  std::size_t of_one_ = SlowestCalls::kMostOfOne;  // calls of each function that are whole so far
  Facts facts_;                                    // those that do not change
};

}  // namespace ptkit::tables::calls
