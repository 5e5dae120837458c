// Counts of (from, to, kind, space): exact, and separate for each address space.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flow/rows/bulk.h"
#include "tables/columns/batch.h"
#include "tables/columns/ip_set.h"

namespace ptkit::tables::columns {

struct Edge {
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  std::uint32_t space = 0;
  std::uint8_t kind = 0;
  bool to_known = true;
  [[nodiscard]] bool operator==(const Edge&) const = default;
};

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

struct EdgeHash {
  [[nodiscard]] std::size_t operator()(const Edge& edge) const noexcept;
};

class EdgeCounter {
 public:
  void add(const Edge& edge, std::uint64_t count = 1) { counts_[edge] += count; }
  // `edges` are sorted, and each occurs once.
  void add_ordered(std::span<const flow::EdgeCount> edges, std::uint32_t space);
  void add_all(const EdgeCounter& others);
  // Removes the edges that have neither end in the set.
  void keep_only(const IpSet& ips);
  // Appends the edges of one bin, sorted by space, from, to and kind, and removes them here. False: out of
  // memory.
  [[nodiscard]] bool move_to(Batch& edges, std::uint32_t bin = 0);

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

}  // namespace ptkit::tables::columns
