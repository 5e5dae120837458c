// Hash table of counted edges. Edges in bulk are not looked up until they have to be merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "flow/rows/bulk.h"

namespace ptkit::tables::columns {

struct Edge {
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  std::uint64_t count = 0;
  std::uint32_t space = 0;
  flow::BranchKind kind = flow::BranchKind::COND;  // with flow::kHalfEdge: the target is unknown
  std::uint32_t hash = flow::edge_hash(from_ip, to_ip);
};

// The order of edges: by space, from, to and kind.
[[nodiscard]] inline bool is_before(const Edge& a, const Edge& b) noexcept {
  if (a.space == b.space && a.from_ip != b.from_ip) return a.from_ip < b.from_ip;
  const auto key = [](const Edge& edge) {
    return std::tuple(edge.space, edge.from_ip, edge.to_ip, flow::kind_of(edge.kind),
                      !flow::is_half_edge(edge.kind));
  };
  return key(a) < key(b);
}

class EdgeTally {
 public:
  void clear() noexcept;
  void add(const Edge& edge);
  // Edges of one address space, each once.
  void add_each(const flow::EdgeCounts& edges, std::uint32_t space);
  void sort();  // edges()
  template <typename Condition>
  void erase_if(const Condition& condition) {
    std::erase_if(edges_, [&](const Edge& edge) {
      if (!condition(edge)) return false;
      branches_ -= edge.count;
      return true;
    });
    free_slots();
  }
  [[nodiscard]] const std::vector<Edge>& edges() const noexcept { return edges_; }
  [[nodiscard]] std::uint64_t branches() const noexcept { return branches_; }  // sum of all counts

 private:
  static constexpr std::size_t kFirstSlots = 256;  // a power of two

  // A slot of an earlier round is free.
  struct Slot {
    std::uint32_t round = 0;
    std::uint32_t number = 0;
  };
  [[nodiscard]] static std::size_t first_index(std::uint32_t hash, std::uint32_t space) noexcept {
    return std::size_t{hash} + space;
  }
  [[nodiscard]] bool merge(const Edge& edge) noexcept;
  [[nodiscard]] Slot& find(const Edge& edge) noexcept;
  void index_all();
  void free_slots() noexcept;

  std::vector<Edge> edges_;
  std::uint64_t branches_ = 0;
  std::size_t indexed_ = 0;  // number of edges that have a slot
  std::vector<Slot> slots_;
  std::uint32_t round_ = 1;
};

}  // namespace ptkit::tables::columns
