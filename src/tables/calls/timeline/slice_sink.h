// Frames of a stream as trees of slices, reduced while they come.
//
//   frame ends -> node, with the list of what it has called -> list of its caller, or of the thread's roots
//
// Memory has at most about twice as many nodes as slices are asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "tables/calls/frame_rows.h"
#include "tables/calls/stack/thread.h"
#include "tables/calls/timeline/band_lists.h"
#include "tables/calls/timeline/branch_points.h"
#include "tables/calls/timeline/open_lists.h"
#include "tables/calls/timeline/slice_reducer.h"

namespace ptkit::tables::calls {

// Roots of a thread. Those of stacks that take turns overlap: each list has roots one after the other.
class RootLists {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 10U;

  // The list that a root is added to, which ends with it now: the one that ended last before it. A root may
  // begin `error` later.
  [[nodiscard]] SliceList& of(std::uint64_t begin, std::uint64_t error, std::uint64_t end);
  [[nodiscard]] std::vector<SliceList>& lists() noexcept { return lists_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept;

 private:
  std::vector<SliceList> lists_;
  std::multimap<std::uint64_t, std::size_t> by_end_;  // indexes of lists_
};

class SliceSink final : public FrameSink {
 public:
  struct Thread {
    Owner owner;
    RootLists roots;
    BandLists bands;
    BranchPoints branches;
    bool has_stacks = false;  // each stack counts its own branches: there are no counts of the thread
  };
  struct Counts {
    std::uint64_t without_times = 0;  // frames
    std::uint64_t frames = 0;         // that have slices
  };

  // `most`: slices; 0: each frame has one.
  SliceSink(TimelineAxis axis, const tables::columns::Selection& selection, std::size_t most);
  SliceSink(const SliceSink&) = delete;
  SliceSink& operator=(const SliceSink&) = delete;

  void on_frame(const Frame& frame, const Owner& owner) override;
  void on_anomaly(const Anomaly&, const Owner&) override {}
  void on_window(std::span<const std::uint64_t> open, std::uint64_t frames) override;
  void on_hidden(const Frame& frame) override;
  void on_off_cpu(const OffCpuInterval& interval, const Owner& owner) override;
  void on_other_stack(const Owner& owner) override;
  [[nodiscard]] std::uint64_t bytes() const noexcept override;
  [[nodiscard]] std::uint64_t later_bytes(const FrameCounts& counts) const noexcept override;

  // After the last frame: no node is free, and all are under roots.
  void finish();
  [[nodiscard]] SliceNodes& nodes() noexcept { return nodes_; }
  [[nodiscard]] std::vector<Thread>& threads() noexcept { return threads_; }
  [[nodiscard]] const SliceReducer& reducer() const noexcept { return reducer_; }
  // Calls of each function that stay whole.
  [[nodiscard]] std::size_t slowest() const noexcept { return slowest_.of_one(); }
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  // How many frames there were, with those that have no slice.
  [[nodiscard]] std::uint64_t ids() const noexcept { return ids_; }

 private:
  [[nodiscard]] std::uint32_t thread_of(const Owner& owner);
  [[nodiscard]] NodeNumber node_of(const Frame& frame, NodeNumber children);
  void pass_on(const Frame& frame, SliceList list);
  void add_roots(std::uint32_t thread, SliceList list);
  void count_branches(const Frame& frame, Thread& thread);
  void reduce();
  [[nodiscard]] std::vector<SliceList*> lists();

  TimelineAxis axis_;
  FrameFilter filter_;
  std::size_t most_;
  std::size_t reduce_at_;  // nodes
  SliceNodes nodes_;
  SlowestCalls slowest_;
  SliceReducer reducer_;
  OpenLists open_;
  std::vector<Thread> threads_;
  std::map<ThreadKey, std::uint32_t> numbers_;  // of threads
  Owner last_owner_;
  std::uint32_t last_thread_ = UINT32_MAX;
  Counts counts_;
  std::uint64_t ids_ = 0;
};

}  // namespace ptkit::tables::calls
