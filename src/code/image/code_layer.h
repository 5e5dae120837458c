// Finds the visible one of many overlapping code regions, by address and time. Internal to src/code/image.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::code::image {

[[nodiscard]] std::uint64_t size_of(const trace::CodeRegion& region) noexcept;

// The visible region at an address. The same region is visible up to `last`, or further.
struct VisibleRegion {
  std::int32_t region = -1;  // index in the bundle's code regions; -1: none
  std::uint64_t last = 0;    // inclusive, so that the last page of the address space is representable
};

// The regions of one address space, or the regions of all spaces. A later region hides earlier ones. The
// address space is split into intervals at the first and last addresses of regions; an interval's history of
// visible regions is computed at its first use. A segment tree of maxima finds the regions that contain an
// address. Memory is O(regions), plus O(regions at an interval) for each used interval.
class CodeLayer {
 public:
  CodeLayer() = default;
  // `times`: further boundaries, where names change and code may not.
  CodeLayer(const std::vector<trace::CodeRegion>& code, const std::vector<std::int32_t>& regions,
            const std::vector<std::uint64_t>& times = {});

  // Thread-safe.
  [[nodiscard]] VisibleRegion at(std::uint64_t address, std::uint64_t tsc) const;

  // Visibility changes only at boundaries. Returns the number of the last boundary up to `tsc`.
  [[nodiscard]] std::size_t boundary_at(std::uint64_t tsc) const noexcept;
  [[nodiscard]] std::uint64_t begins(std::size_t boundary) const noexcept {
    return boundary < boundaries_.size() ? boundaries_[boundary] : trace::kTscMax;
  }

 private:
  struct Visibility {  // `region` is visible from `from` on
    std::uint64_t from;
    std::int32_t region;
  };
  using History = std::vector<Visibility>;
  struct Extent {
    std::uint64_t first;
    std::uint64_t last;
    std::int32_t region;
  };
  // The addresses from `first` to the next interval: no region begins or ends between.
  struct Interval {
    explicit Interval(std::uint64_t the_first) : first(the_first) {}
    Interval(Interval&& other) noexcept : first(other.first), history(other.history.exchange(nullptr)) {}
    Interval& operator=(Interval&&) = delete;
    ~Interval() { delete history.load(); }
    const std::uint64_t first;
    mutable std::atomic<const History*> history = nullptr;  // computed at the first use
  };
  static constexpr int kMaxJoined = 16;                     // intervals that at() joins
  static constexpr std::uint64_t kMaxJoinedBytes = 0x1000;  // at() joins intervals up to this length

  [[nodiscard]] std::int32_t visible_in(const Interval& interval, std::uint64_t tsc) const;
  [[nodiscard]] std::unique_ptr<const History> history_of(std::uint64_t address) const;
  void find(std::size_t node, std::size_t begin, std::size_t end, std::size_t before, std::uint64_t address,
            std::vector<std::int32_t>& out) const;
  void make_intervals();
  void make_max_tree();

  const std::vector<trace::CodeRegion>* code_ = nullptr;
  std::vector<Extent> extents_;          // sorted by first address
  std::vector<std::uint64_t> max_last_;  // segment tree over extents_: the maximum of `last` below each node
  std::size_t leaves_ = 0;               // leaves of the tree: a power of two
  std::vector<Interval> intervals_;      // sorted
  std::vector<std::uint64_t> boundaries_ = {trace::kTscMin};
};

}  // namespace ptkit::code::image
