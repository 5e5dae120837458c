// Where the hot loop's rows go. Each kind has the same members; the loop is compiled for each.
#pragma once

#include <cstdint>
#include <cstring>

#include "flow/bulk.h"
#include "flow/decision_graph.h"

namespace ptkit::flow {

struct NoRows {
  static constexpr bool kBounded = false;  // by the room's rows
  explicit NoRows(const BulkRoom& room) : rows(room.row) {}
  void begin(DecisionGraph&) noexcept {}
  void bits(Cell&) noexcept {}
  void target(Cell&) noexcept {}
  [[nodiscard]] std::size_t before_target() const noexcept { return rows; }
  std::size_t rows;
};

struct EdgeRows : NoRows {
  using NoRows::NoRows;
  void begin(DecisionGraph& graph) noexcept { graph_ = &graph; }
  void bits(Cell& cell) {
    if (++cell.count == 0) [[unlikely]]
      graph_->carry_bits(cell);
  }
  void target(Cell& cell) {
    if (++cell.count == 0) [[unlikely]]
      graph_->carry_target(cell);
  }

 private:
  DecisionGraph* graph_ = nullptr;
};

// Counts, and notes what was counted.
struct UsedRows : NoRows {
  using NoRows::NoRows;
  void begin(DecisionGraph& graph) noexcept { graph_ = &graph; }
  void bits(Cell& cell) {
    if (cell.count == 0) graph_->note_bits(cell);
    if (++cell.count == 0) graph_->carry_bits(cell);
  }
  void target(Cell& cell) {
    if (cell.count == 0) graph_->note_target(cell);
    if (++cell.count == 0) graph_->carry_target(cell);
  }

 private:
  DecisionGraph* graph_ = nullptr;
};

struct BranchRows {
  static constexpr bool kBounded = true;
  explicit BranchRows(const BulkRoom& room)
      : rows(room.row), from_(room.from_ip), to_(room.to_ip), kind_(room.branch), flags_(room.flags) {}
  void begin(const DecisionGraph& graph) noexcept {
    ways_ = graph.ways();
    groups_ = graph.groups();
  }
  void bits(const Cell& cell) noexcept {
    const Way& way = ways_[cell.way];
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
  void target(const Cell& cell) noexcept {
    bits(cell);
    if (to_ != nullptr && (cell.flags & CELL_TARGET) != 0) to_[rows - 1] = cell.ip;
  }
  [[nodiscard]] std::size_t before_target() const noexcept { return rows - 1; }
  std::size_t rows;

 private:
  const Way* ways_ = nullptr;
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
  static constexpr bool kBounded = true;
  explicit InsnRows(const BulkRoom& room) : rows(room.row), ip_(room.ip), size_(room.size), cls_(room.cls) {}
  void begin(DecisionGraph& graph) noexcept {
    graph_ = &graph;
    insns_ = &graph.way_insns();
  }
  void bits(const Cell& cell) {
    std::uint32_t first = insns_->first(cell.way);
    if (first == 0) [[unlikely]]
      first = graph_->add_way_insns(cell.way);
    if (ip_ != nullptr) copy_insns(ip_ + rows, insns_->ips() + first, cell.insns);
    if (size_ != nullptr) copy_insns(size_ + rows, insns_->sizes() + first, cell.insns);
    if (cls_ != nullptr) copy_insns(cls_ + rows, insns_->classes() + first, cell.insns);
    rows += cell.insns;
  }
  void target(const Cell& cell) { bits(cell); }
  [[nodiscard]] std::size_t before_target() const noexcept { return rows; }
  std::size_t rows;

 private:
  DecisionGraph* graph_ = nullptr;
  const WayInsns* insns_ = nullptr;
  std::uint64_t* ip_;
  std::uint8_t* size_;
  std::uint8_t* cls_;
};

struct BlockRows {
  static constexpr bool kBounded = true;
  explicit BlockRows(const BulkRoom& room)
      : rows(room.row), ip_(room.ip), bytes_(room.bytes), insns_(room.insns) {}
  void begin(const DecisionGraph& graph) noexcept {
    ways_ = graph.ways();
    steps_ = graph.steps();
    ips_ = graph.insn_ips();
  }
  void bits(const Cell& cell) noexcept {
    const Way& way = ways_[cell.way];
    const Step* step = steps_ + way.step;
    for (const Step* const end = step + way.steps; step != end; ++step, ++rows) {
      if (ip_ != nullptr) ip_[rows] = ips_[step->first];
      if (bytes_ != nullptr) bytes_[rows] = step->size;
      if (insns_ != nullptr) insns_[rows] = step->count;
    }
  }
  void target(const Cell& cell) noexcept { bits(cell); }
  [[nodiscard]] std::size_t before_target() const noexcept { return rows; }
  std::size_t rows;

 private:
  const Way* ways_ = nullptr;
  const Step* steps_ = nullptr;
  const std::uint64_t* ips_ = nullptr;
  std::uint64_t* ip_;
  std::uint32_t* bytes_;
  std::uint32_t* insns_;
};

}  // namespace ptkit::flow
