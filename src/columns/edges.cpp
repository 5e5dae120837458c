#include "columns/edges.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace ptkit::columns {

std::size_t EdgeHash::operator()(const Edge& edge) const noexcept {
  // Multiply and fold: targets differ in few low bits, so both ends are spread over the word.
  std::uint64_t hash = edge.from_ip * 0x9e3779b97f4a7c15u;
  hash ^= (edge.to_ip + edge.kind) * 0xc2b2ae3d27d4eb4fu;
  hash ^= std::uint64_t{edge.space} * 0x165667b19e3779f9u;
  return static_cast<std::size_t>(hash ^ (hash >> 29));
}

bool EdgeCounter::move_to(Batch& edges) {
  std::vector<std::pair<Edge, std::uint64_t>> sorted(counts_.begin(), counts_.end());
  counts_.clear();
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    const auto key = [](const Edge& e) { return std::tie(e.space, e.from_ip, e.to_ip, e.kind); };
    return key(a.first) < key(b.first);
  });
  if (!edges.reserve(sorted.size())) return false;
  std::size_t row = edges.rows();
  for (const auto& [edge, count] : sorted) {
    edges.put<Column::edges_from_ip>(row, edge.from_ip);
    edges.put<Column::edges_to_ip>(row, edge.to_ip);
    edges.put<Column::edges_kind>(row, edge.kind);
    edges.put<Column::edges_count>(row, count);
    edges.put<Column::edges_space>(row, edge.space);
    ++row;
  }
  edges.add_rows(sorted.size());
  return true;
}

bool combine_edges(Batch& edges) {
  EdgeCounter counter;
  for (std::size_t row = 0; row < edges.rows(); ++row) {
    Edge edge;
    edge.from_ip = edges.cells<Column::edges_from_ip>()[row];
    edge.to_ip = edges.cells<Column::edges_to_ip>()[row];
    edge.kind = edges.cells<Column::edges_kind>()[row];
    edge.space = edges.cells<Column::edges_space>()[row];
    counter.add(edge, edges.cells<Column::edges_count>()[row]);
  }
  edges.drop_front(edges.rows());
  return counter.move_to(edges);
}

}  // namespace ptkit::columns
