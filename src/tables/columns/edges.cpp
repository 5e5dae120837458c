#include "tables/columns/edges.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "flow/rows/rows.h"

namespace ptkit::tables::columns {

namespace {

// Merges two sorted lists: calls put(edge, count) for the edges of both, in order.
template <typename Put>
void merge(const std::vector<Edge>& some, const std::vector<Edge>& others, const Put& put) {
  auto a = some.begin();
  auto b = others.begin();
  while (a != some.end() && b != others.end()) {
    if (is_before(*a, *b)) {
      put(*a, a->count);
      ++a;
    } else if (is_before(*b, *a)) {
      put(*b, b->count);
      ++b;
    } else {
      put(*a, a->count + b->count);
      ++a;
      ++b;
    }
  }
  for (; a != some.end(); ++a) put(*a, a->count);
  for (; b != others.end(); ++b) put(*b, b->count);
}

}  // namespace

void EdgeCounter::add_ordered(std::span<const flow::EdgeCount> edges, std::uint32_t space) {
  std::vector<Edge> more;
  more.reserve(edges.size());
  bool is_sorted = true;
  for (const flow::EdgeCount& one : edges) {
    more.push_back({one.from_ip, one.to_ip, one.count, space, one.kind, one.hash});
    is_sorted = is_sorted && !flow::is_half_edge(one.kind);
  }
  if (!is_sorted) std::sort(more.begin(), more.end(), is_before);
  add_sorted(std::move(more));
}

void EdgeCounter::add_all(const EdgeCounter& others) {
  for (const Edge& edge : others.counts_.edges()) counts_.add(edge);
  add_sorted(others.ordered_);
}

// Most edges are known from the second list on: only others take more memory.
void EdgeCounter::add_sorted(std::vector<Edge> more) {
  if (ordered_.empty()) {
    ordered_ = std::move(more);
    return;
  }
  std::size_t added = 0;
  auto known = ordered_.begin();
  for (const Edge& edge : more) {
    while (known != ordered_.end() && is_before(*known, edge)) ++known;
    if (known != ordered_.end() && !is_before(edge, *known)) {
      known->count += edge.count;
    } else {
      more[added++] = edge;
    }
  }
  // Merges from the back, in place.
  auto from = static_cast<std::ptrdiff_t>(ordered_.size());
  ordered_.resize(ordered_.size() + added);
  for (auto to = ordered_.end(); added > 0;) {
    const bool is_last = from == 0 || is_before(ordered_.begin()[from - 1], more[added - 1]);
    *--to = is_last ? more[--added] : ordered_.begin()[--from];
  }
}

void EdgeCounter::keep_only(const IpSet& ips) {
  const auto is_outside = [&ips](const Edge& edge) {
    if (flow::is_counted_block(edge.kind)) {
      const std::uint32_t bytes = std::max(flow::BlockSize::of(edge.to_ip).bytes, 1U);
      return !ips.meets(edge.from_ip, edge.from_ip + bytes - 1, edge.space);
    }
    return !ips.has(edge.from_ip, edge.space) &&
           (flow::is_half_edge(edge.kind) || !ips.has(edge.to_ip, edge.space));
  };
  counts_.erase_if(is_outside);
  std::erase_if(ordered_, is_outside);
}

bool EdgeCounter::move_to(Batch& edges, std::uint32_t bin) {
  counts_.sort();
  if (!edges.reserve(counts_.edges().size() + ordered_.size())) return false;
  const std::size_t before = edges.rows();
  std::size_t row = before;
  merge(ordered_, counts_.edges(), [&](const Edge& edge, std::uint64_t count) {
    const bool to_known = !flow::is_half_edge(edge.kind);
    edges.put<Column::edges_from_ip>(row, edge.from_ip);
    edges.put<Column::edges_to_ip>(row, edge.to_ip);
    edges.put<Column::edges_kind>(row, static_cast<std::uint8_t>(flow::kind_of(edge.kind)));
    edges.put<Column::edges_count>(row, count);
    edges.put<Column::edges_space>(row, edge.space);
    edges.put<Column::edges_flags>(row, to_known ? std::uint8_t{flow::TO_KNOWN} : std::uint8_t{0});
    edges.put<Column::edges_bin>(row, bin);
    ++row;
  });
  edges.add_rows(row - before);
  counts_ = {};
  ordered_ = {};
  return true;
}

bool combine_edges(Batch& edges) {
  std::map<std::uint32_t, EdgeCounter> counters;
  const std::uint32_t* const bins = edges.cells<Column::edges_bin>();
  for (std::size_t row = 0; row < edges.rows(); ++row) {
    const auto kind = static_cast<flow::BranchKind>(edges.cells<Column::edges_kind>()[row]);
    const bool to_known = (edges.cells<Column::edges_flags>()[row] & flow::TO_KNOWN) != 0;
    counters[bins == nullptr ? 0 : bins[row]].add(
        {edges.cells<Column::edges_from_ip>()[row], edges.cells<Column::edges_to_ip>()[row],
         edges.counts<Column::edges_count>()[row], edges.cells<Column::edges_space>()[row],
         to_known ? kind : flow::half_edge(kind)});
  }
  edges.drop_front(edges.rows());
  return std::all_of(counters.begin(), counters.end(),
                     [&](auto& one) { return one.second.move_to(edges, one.first); });
}

}  // namespace ptkit::tables::columns
