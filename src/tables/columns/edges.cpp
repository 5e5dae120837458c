#include "tables/columns/edges.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "flow/rows/rows.h"

namespace ptkit::tables::columns {

std::size_t EdgeHash::operator()(const Edge& edge) const noexcept {
  // Multiply-and-fold hash: targets differ in few low bits, so it spreads both ends over the word.
  std::uint64_t hash = edge.from_ip * 0x9e3779b97f4a7c15u;
  hash ^= (edge.to_ip + edge.kind) * 0xc2b2ae3d27d4eb4fu;
  hash ^= std::uint64_t{edge.space} * 0x165667b19e3779f9u;
  return static_cast<std::size_t>(hash ^ (hash >> 29));
}

namespace {

[[nodiscard]] auto key_of(const Edge& edge) noexcept {
  return std::tie(edge.space, edge.from_ip, edge.to_ip, edge.kind, edge.to_known);
}

constexpr auto kBefore = [](const auto& a, const auto& b) { return key_of(a.first) < key_of(b.first); };

}  // namespace

void EdgeCounter::add_ordered(std::span<const flow::EdgeCount> edges, std::uint32_t space) {
  std::vector<Counted> more;
  more.reserve(edges.size());
  bool is_sorted = true;
  for (const flow::EdgeCount& one : edges) {
    const bool to_known = !flow::is_half_edge(one.kind);
    const auto kind = static_cast<std::uint8_t>(flow::kind_of(one.kind));
    more.push_back({{one.from_ip, one.to_ip, space, kind, to_known}, one.count});
    is_sorted = is_sorted && to_known;
  }
  if (!is_sorted) std::sort(more.begin(), more.end(), kBefore);
  add_sorted(std::move(more));
}

void EdgeCounter::add_all(const EdgeCounter& others) {
  for (const auto& [edge, count] : others.counts_) counts_[edge] += count;
  add_sorted(others.ordered_);
}

// Merges two sorted lists: calls put(edge, count) for the edges of both, in order.
template <typename Put>
void EdgeCounter::merge(const std::vector<Counted>& some, const std::vector<Counted>& others,
                        const Put& put) {
  auto a = some.begin();
  auto b = others.begin();
  while (a != some.end() && b != others.end()) {
    if (a->first == b->first) {
      put(a->first, a->second + b->second);
      ++a;
      ++b;
    } else {
      const auto& [edge, count] = kBefore(*a, *b) ? *a++ : *b++;
      put(edge, count);
    }
  }
  for (; a != some.end(); ++a) put(a->first, a->second);
  for (; b != others.end(); ++b) put(b->first, b->second);
}

void EdgeCounter::add_sorted(std::vector<Counted> more) {
  if (more.empty()) return;
  if (ordered_.empty()) {
    ordered_ = std::move(more);
    return;
  }
  std::vector<Counted> both;
  both.reserve(ordered_.size() + more.size());
  merge(ordered_, more, [&](const Edge& edge, std::uint64_t count) { both.emplace_back(edge, count); });
  ordered_ = std::move(both);
}

void EdgeCounter::keep_only(const IpSet& ips) {
  const auto is_outside = [&ips](const auto& counted) {
    const Edge& edge = counted.first;
    return !ips.has(edge.from_ip, edge.space) && !(edge.to_known && ips.has(edge.to_ip, edge.space));
  };
  std::erase_if(counts_, is_outside);
  std::erase_if(ordered_, is_outside);
}

bool EdgeCounter::move_to(Batch& edges, std::uint32_t bin) {
  std::vector<Counted> sorted(counts_.begin(), counts_.end());
  counts_.clear();
  std::sort(sorted.begin(), sorted.end(), kBefore);
  const std::vector<Counted> ordered = std::exchange(ordered_, {});
  if (!edges.reserve(sorted.size() + ordered.size())) return false;
  const std::size_t before = edges.rows();
  std::size_t row = before;
  merge(ordered, sorted, [&](const Edge& edge, std::uint64_t count) {
    edges.put<Column::edges_from_ip>(row, edge.from_ip);
    edges.put<Column::edges_to_ip>(row, edge.to_ip);
    edges.put<Column::edges_kind>(row, edge.kind);
    edges.put<Column::edges_count>(row, count);
    edges.put<Column::edges_space>(row, edge.space);
    edges.put<Column::edges_flags>(row, edge.to_known ? std::uint8_t{flow::TO_KNOWN} : std::uint8_t{0});
    edges.put<Column::edges_bin>(row, bin);
    ++row;
  });
  edges.add_rows(row - before);
  return true;
}

bool combine_edges(Batch& edges) {
  std::map<std::uint32_t, EdgeCounter> counters;
  const std::uint32_t* const bins = edges.cells<Column::edges_bin>();
  for (std::size_t row = 0; row < edges.rows(); ++row) {
    Edge edge;
    edge.from_ip = edges.cells<Column::edges_from_ip>()[row];
    edge.to_ip = edges.cells<Column::edges_to_ip>()[row];
    edge.kind = edges.cells<Column::edges_kind>()[row];
    edge.space = edges.cells<Column::edges_space>()[row];
    edge.to_known = (edges.cells<Column::edges_flags>()[row] & flow::TO_KNOWN) != 0;
    counters[bins == nullptr ? 0 : bins[row]].add(edge, edges.counts<Column::edges_count>()[row]);
  }
  edges.drop_front(edges.rows());
  return std::all_of(counters.begin(), counters.end(),
                     [&](auto& one) { return one.second.move_to(edges, one.first); });
}

}  // namespace ptkit::tables::columns
