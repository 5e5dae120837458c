// Counts of edges, for each phase of a request.
#pragma once

#include <span>
#include <vector>

#include "flow/rows/rows.h"
#include "tables/columns/edges.h"
#include "tables/columns/request.h"

namespace ptkit::tables::columns {

class EdgePhases {
 public:
  explicit EdgePhases(const Request& request);

  // Counts a branch, if both of its ends are known, or it is one of Request::half_edges. `position` is the
  // number or the time by which the request has phases.
  void add(const flow::Branch& branch, trace::SpaceId space, std::uint64_t position);
  // Counts a block.
  void add(const flow::Block& block, trace::SpaceId space, std::uint64_t position);
  // Counts of flow::BulkSink::add_edges().
  void add(std::span<const flow::EdgeCount> edges, trace::SpaceId space, std::uint32_t phase);
  void add_all(const EdgePhases& others);
  // Appends all edges that are selected by their addresses, by phase, and removes them here. False: out of
  // memory.
  [[nodiscard]] bool move_to(Batch& edges);

 private:
  [[nodiscard]] std::size_t phase_of(std::uint64_t position) const noexcept;

  const Request& request_;
  std::vector<EdgeCounter> counters_;  // by phase
};

}  // namespace ptkit::tables::columns
