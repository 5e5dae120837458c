// Counts of (from, to, kind, space): exact, and separate for each address space.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "flow/rows/bulk.h"
#include "tables/columns/batch.h"
#include "tables/columns/edge_tally.h"
#include "tables/columns/ip_set.h"

namespace ptkit::tables::columns {

// How edges are counted from now on.
struct Phase {
  bool rows = true;    // one by one, by their times
  bool counts = true;  // in bulk: false: not at all
  std::size_t number = 0;
  std::size_t limits = 0;  // that all rows are behind, if they are not counted one by one

  [[nodiscard]] static Phase by_row() noexcept { return {}; }
  [[nodiscard]] static Phase none(std::size_t limits = 0) noexcept { return {false, false, 0, limits}; }
  [[nodiscard]] static Phase in_bulk(std::size_t number) noexcept {
    return {false, true, number, number + 1};
  }
  [[nodiscard]] bool is_none() const noexcept { return !rows && !counts; }
  bool operator==(const Phase&) const = default;
};

class EdgeCounter {
 public:
  void add(const Edge& edge) { counts_.add(edge); }
  // `edges` are sorted, and each occurs once.
  void add_ordered(std::span<const flow::EdgeCount> edges, std::uint32_t space);
  void add_all(const EdgeCounter& others);
  // Removes the edges that have neither end in the set, and the blocks that do not overlap it.
  void keep_only(const IpSet& ips);
  // Appends the edges of one bin in their order, and removes them here. False: out of memory.
  [[nodiscard]] bool move_to(Batch& edges, std::uint32_t bin = 0);

 private:
  void add_sorted(std::vector<Edge> more);

  EdgeTally counts_;           // edges that were added one by one
  std::vector<Edge> ordered_;  // edges that were added in order
};

// Merges rows with equal keys into one row. `edges` must have all its columns. False: out of memory.
[[nodiscard]] bool combine_edges(Batch& edges);

}  // namespace ptkit::tables::columns
