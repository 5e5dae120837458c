// Counts of (from, to, kind, space): exact, and never merged across address spaces.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "columns/batch.h"
#include "flow/bulk.h"

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
  // `edges` are in order, each once.
  void add_ordered(std::span<const flow::EdgeCount> edges, std::uint32_t space);
  void add_all(const EdgeCounter& others);
  // Appends the edges, ordered by space, from, to and kind, and forgets them. False: out of memory.
  [[nodiscard]] bool move_to(Batch& edges);

 private:
  using Counted = std::pair<Edge, std::uint64_t>;

  template <typename Put>
  static void merge(const std::vector<Counted>& some, const std::vector<Counted>& others, const Put& put);
  void add_sorted(std::vector<Counted> more);

  std::unordered_map<Edge, std::uint64_t, EdgeHash> counts_;  // that came one by one
  std::vector<Counted> ordered_;                              // the others
};

// Makes one row of rows with equal keys. `edges` must have all its columns. False: out of memory.
[[nodiscard]] bool combine_edges(Batch& edges);

}  // namespace ptkit::columns
