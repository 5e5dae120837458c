// Which of many regions is seen, by address and by time. For .cpp files of this folder only.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::image {

[[nodiscard]] std::uint64_t size_of(const trace::CodeRegion& region) noexcept;

// What is seen at an address; the same up to `last`, and perhaps beyond.
struct CodeSpot {
  std::int32_t region = -1;  // index in the bundle's code regions, -1: none
  std::uint64_t last = 0;    // inclusive: the last page of the address space has no end
};

// The regions of one address space, or those that are seen from everywhere. Later ones lie over those before
// them. Takes memory for each region, and for each place that was looked at, for each region there: never for
// regions times moments.
class CodeLayer {
 public:
  CodeLayer() = default;
  CodeLayer(const std::vector<trace::CodeRegion>& code, const std::vector<std::int32_t>& regions);

  // Thread-safe.
  [[nodiscard]] CodeSpot at(std::uint64_t address, std::uint64_t tsc) const;

  // What is seen changes only at boundaries: the number of the last one up to a time, and when it is.
  [[nodiscard]] std::size_t boundary_at(std::uint64_t tsc) const noexcept;
  [[nodiscard]] std::uint64_t begins(std::size_t boundary) const noexcept {
    return boundary < boundaries_.size() ? boundaries_[boundary] : trace::kTscMax;
  }

 private:
  struct Stay {  // a region is seen from a time on
    std::uint64_t from;
    std::int32_t region;
  };
  using History = std::vector<Stay>;
  struct Extent {
    std::uint64_t first;
    std::uint64_t last;
    std::int32_t region;
  };
  // Between two of the addresses at which a region begins or ends.
  struct Cell {
    explicit Cell(std::uint64_t the_first) : first(the_first) {}
    Cell(Cell&& other) noexcept : first(other.first), history(other.history.exchange(nullptr)) {}
    Cell& operator=(Cell&&) = delete;
    ~Cell() { delete history.load(); }
    const std::uint64_t first;
    mutable std::atomic<const History*> history = nullptr;  // made when first asked for
  };
  static constexpr int kMostJoined = 16;               // cells: what one region is cut into
  static constexpr std::uint64_t kFarEnough = 0x1000;  // bytes: where joining ends

  [[nodiscard]] std::int32_t seen_in(const Cell& cell, std::uint64_t tsc) const;
  [[nodiscard]] std::unique_ptr<const History> history_of(std::uint64_t address) const;
  void find(std::size_t node, std::size_t begin, std::size_t end, std::size_t before, std::uint64_t address,
            std::vector<std::int32_t>& out) const;
  void make_cells();
  void make_reach();

  const std::vector<trace::CodeRegion>* code_ = nullptr;
  std::vector<Extent> extents_;       // by their first address
  std::vector<std::uint64_t> reach_;  // a tree over extents_: the highest address that any below reaches
  std::size_t leaves_ = 0;            // of the tree: a power of two
  std::vector<Cell> cells_;           // sorted
  std::vector<std::uint64_t> boundaries_ = {trace::kTscMin};
};

}  // namespace ptkit::image
