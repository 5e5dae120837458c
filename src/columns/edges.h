// Counts of (from, to, kind, space): exact, and separate for each address space.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "columns/batch.h"
#include "flow/rows/bulk.h"

namespace ptkit::columns {

struct Edge {
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  std::uint32_t space = 0;
  std::uint8_t kind = 0;
  [[nodiscard]] bool operator==(const Edge&) const = default;
};

struct EdgeHash {
  [[nodiscard]] std::size_t operator()(const Edge& edge) const noexcept;
};

class EdgeCounter {
 public:
  void add(const Edge& edge, std::uint64_t count = 1) { counts_[edge] += count; }
  // `edges` are sorted, and each occurs once.
  void add_ordered(std::span<const flow::EdgeCount> edges, std::uint32_t space);
  void add_all(const EdgeCounter& others);
  // Appends the edges, sorted by space, from, to and kind, and removes them here. False: out of memory.
  [[nodiscard]] bool move_to(Batch& edges);

 private:
  using Counted = std::pair<Edge, std::uint64_t>;

  template <typename Put>
  static void merge(const std::vector<Counted>& some, const std::vector<Counted>& others, const Put& put);
  void add_sorted(std::vector<Counted> more);

  std::unordered_map<Edge, std::uint64_t, EdgeHash> counts_;  // edges that were added one by one
  std::vector<Counted> ordered_;                              // edges that were added in order
};

// Merges rows with equal keys into one row. `edges` must have all its columns. False: out of memory.
[[nodiscard]] bool combine_edges(Batch& edges);

}  // namespace ptkit::columns
