#include "tables/columns/rows/edge_phases.h"

#include <algorithm>
#include <iterator>

namespace ptkit::tables::columns {

EdgePhases::EdgePhases(const Request& request)
    : request_(request), counters_(std::max<std::size_t>(request.bins.size(), 2) - 1) {}

// counters_.size() or more: in no phase.
std::size_t EdgePhases::phase_of(std::uint64_t position) const noexcept {
  const auto& limits = request_.bins;
  if (limits.empty()) return 0;
  return static_cast<std::size_t>(std::upper_bound(limits.begin(), limits.end(), position) - limits.begin()) -
         1;
}

void EdgePhases::add(const flow::Branch& branch, trace::SpaceId space, std::uint64_t position) {
  const bool to_known = (branch.flags & flow::TO_KNOWN) != 0;
  const bool is_indirect =
      branch.kind == flow::BranchKind::CALL_INDIRECT || branch.kind == flow::BranchKind::JUMP_INDIRECT;
  if ((branch.flags & flow::FROM_KNOWN) == 0) return;
  if (!to_known && !(request_.half_edges && is_indirect)) return;
  const std::size_t phase = phase_of(position);
  if (phase >= counters_.size()) return;
  if (to_known) {
    counters_[phase].add({branch.from_ip, branch.to_ip, 1, space, branch.kind});
  } else {
    counters_[phase].add({branch.from_ip, 0, 1, space, flow::half_edge(branch.kind)});
  }
}

void EdgePhases::add(const flow::Block& block, trace::SpaceId space, std::uint64_t position) {
  const std::size_t phase = phase_of(position);
  if (phase >= counters_.size()) return;
  const flow::BlockSize size{block.size, static_cast<std::uint32_t>(block.insns.size())};
  counters_[phase].add({block.ip, size.to_ip(), 1, space, flow::counted_block(block.mode)});
}

void EdgePhases::add(std::span<const flow::EdgeCount> edges, trace::SpaceId space, std::uint32_t phase) {
  if (phase >= counters_.size()) return;  // before the first phase
  EdgeCounter& counter = counters_[phase];
  const flow::BranchChoice& choice = request_.selection.branches;
  const bool takes_all = choice == flow::BranchChoice{};
  if (takes_all && request_.half_edges) return counter.add_ordered(edges, space);
  std::vector<flow::EdgeCount> chosen;
  std::copy_if(edges.begin(), edges.end(), std::back_inserter(chosen), [&](const flow::EdgeCount& edge) {
    if (flow::is_half_edge(edge.kind) && !request_.half_edges) return false;
    return takes_all || flow::is_counted_block(edge.kind) || choice.has(flow::kind_of(edge.kind));
  });
  counter.add_ordered(chosen, space);
}

void EdgePhases::add_all(const EdgePhases& others) {
  for (std::size_t phase = 0; phase < counters_.size(); ++phase)
    counters_[phase].add_all(others.counters_[phase]);
}

bool EdgePhases::move_to(Batch& edges) {
  const IpSet ips(request_.selection.ips);
  for (std::size_t phase = 0; phase < counters_.size(); ++phase) {
    if (!ips.empty()) counters_[phase].keep_only(ips);
    if (!counters_[phase].move_to(edges, static_cast<std::uint32_t>(phase))) return false;
  }
  return true;
}

}  // namespace ptkit::tables::columns
