// Where the hot loop's rows go. Each kind has the same members; the loop is compiled for each.
#pragma once

#include <cstdint>
#include <cstring>

#include "flow/bulk.h"
#include "flow/decision_graph.h"

namespace ptkit::flow {

struct NoRows {
  explicit NoRows(const BulkRoom& room) : rows(room.row) {}
  void begin(const DecisionGraph&) noexcept {}
  void way(Way&) noexcept {}
  void exit(Way&, DecisionGraph::Hop&) noexcept {}
  [[nodiscard]] std::size_t before_exit() const noexcept { return rows; }
  std::size_t rows;
};

struct EdgeRows : NoRows {
  using NoRows::NoRows;
  void way(Way& way) noexcept { ++way.count; }
  void exit(Way&, DecisionGraph::Hop& hop) noexcept { ++hop.count; }
};

// Counts, and notes what was counted.
struct UsedRows : NoRows {
  using NoRows::NoRows;
  void begin(DecisionGraph& graph) noexcept { graph_ = &graph; }
  void way(Way& way) {
    if (way.count++ == 0) graph_->note_use(way);
  }
  void exit(Way&, DecisionGraph::Hop& hop) {
    if (hop.count++ == 0) graph_->note_use(hop);
  }

 private:
  DecisionGraph* graph_ = nullptr;
};

struct BranchRows {
  explicit BranchRows(const BulkRoom& room)
      : rows(room.row), from_(room.from_ip), to_(room.to_ip), kind_(room.branch), flags_(room.flags) {}
  void begin(const DecisionGraph& graph) noexcept { groups_ = graph.groups(); }
  void way(const Way& way) noexcept {
    const RowGroup* group = groups_ + way.group;
    const std::size_t end = rows + way.rows;
    for (std::size_t at = rows; at < end; at += RowGroup::kRows, ++group) {
      if (from_ != nullptr) std::memcpy(from_ + at, group->from.data(), sizeof group->from);
      if (to_ != nullptr) std::memcpy(to_ + at, group->to.data(), sizeof group->to);
      if (kind_ != nullptr) std::memcpy(kind_ + at, group->kind.data(), sizeof group->kind);
      if (flags_ != nullptr) std::memcpy(flags_ + at, group->flags.data(), sizeof group->flags);
    }
    rows = end;
  }
  void exit(const Way& exit, const DecisionGraph::Hop& hop) noexcept {
    way(exit);
    if (to_ != nullptr) to_[rows - 1] = hop.ip;
  }
  [[nodiscard]] std::size_t before_exit() const noexcept { return rows - 1; }
  std::size_t rows;

 private:
  const RowGroup* groups_ = nullptr;
  std::uint64_t* from_;
  std::uint64_t* to_;
  std::uint8_t* kind_;
  std::uint8_t* flags_;
};

// In whole pieces: what is too much is overwritten by what comes next.
template <typename T>
void copy_insns(T* to, const T* from, std::size_t count) noexcept {
  constexpr std::size_t kPiece = WayInsns::kSlack;
  for (std::size_t done = 0; done < count; done += kPiece) {
    std::memcpy(to + done, from + done, kPiece * sizeof(T));
  }
}

struct InsnRows {
  explicit InsnRows(const BulkRoom& room) : rows(room.row), ip_(room.ip), size_(room.size), cls_(room.cls) {}
  void begin(DecisionGraph& graph) noexcept {
    graph_ = &graph;
    ways_ = graph.ways();
    insns_ = &graph.way_insns();
  }
  void way(const Way& way) {
    const auto id = static_cast<WayId>(&way - ways_);
    std::uint32_t first = insns_->first(id);
    if (first == 0) [[unlikely]]
      first = graph_->add_way_insns(id);
    if (ip_ != nullptr) copy_insns(ip_ + rows, insns_->ips() + first, way.insns);
    if (size_ != nullptr) copy_insns(size_ + rows, insns_->sizes() + first, way.insns);
    if (cls_ != nullptr) copy_insns(cls_ + rows, insns_->classes() + first, way.insns);
    rows += way.insns;
  }
  void exit(const Way& exit, const DecisionGraph::Hop&) { way(exit); }
  [[nodiscard]] std::size_t before_exit() const noexcept { return rows; }
  std::size_t rows;

 private:
  DecisionGraph* graph_ = nullptr;
  const Way* ways_ = nullptr;
  const WayInsns* insns_ = nullptr;
  std::uint64_t* ip_;
  std::uint8_t* size_;
  std::uint8_t* cls_;
};

struct BlockRows {
  explicit BlockRows(const BulkRoom& room)
      : rows(room.row), ip_(room.ip), bytes_(room.bytes), insns_(room.insns) {}
  void begin(const DecisionGraph& graph) noexcept {
    steps_ = graph.steps();
    ips_ = graph.insn_ips();
  }
  void way(const Way& way) noexcept {
    const Step* step = steps_ + way.step;
    for (const Step* const end = step + way.steps; step != end; ++step, ++rows) {
      if (ip_ != nullptr) ip_[rows] = ips_[step->first];
      if (bytes_ != nullptr) bytes_[rows] = step->size;
      if (insns_ != nullptr) insns_[rows] = step->count;
    }
  }
  void exit(const Way& exit, const DecisionGraph::Hop&) noexcept { way(exit); }
  [[nodiscard]] std::size_t before_exit() const noexcept { return rows; }
  std::size_t rows;

 private:
  const Step* steps_ = nullptr;
  const std::uint64_t* ips_ = nullptr;
  std::uint64_t* ip_;
  std::uint32_t* bytes_;
  std::uint32_t* insns_;
};

}  // namespace ptkit::flow
