// Where the hot loop's rows go. Each kind has the same members; the loop is compiled for each.
#pragma once

#include <cstdint>
#include <cstring>

#include "flow/bulk.h"
#include "flow/decision_graph.h"

namespace ptkit::flow {

struct NoRows {
  static constexpr bool kBounded = false;    // by the room's rows
  static constexpr bool kMayBeNone = false;  // rows of a packet
  explicit NoRows(const BulkRoom& room) : rows(room.row) {}
  void begin(DecisionGraph&) noexcept {}
  void bits(Cell&) noexcept {}
  void target(Cell&) noexcept {}
  [[nodiscard]] std::size_t before_target() const noexcept { return rows; }
  // Of the way of bits that was put last: rows before its first bit.
  [[nodiscard]] std::size_t head(const Cell&) const noexcept { return 0; }
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

// kChosen: branches of the room's choice; otherwise all. kCounted: with the instructions that came before.
template <bool kChosen, bool kCounted>
struct BranchRows {
  static constexpr bool kBounded = true;
  static constexpr bool kMayBeNone = kChosen;
  explicit BranchRows(const BulkRoom& room)
      : rows(room.row),
        choice_(room.choice),
        from_(room.from_ip),
        to_(room.to_ip),
        kind_(room.branch),
        flags_(room.flags),
        instruction_(room.instruction),
        retired_(room.first_instruction) {}
  void begin(DecisionGraph& graph) noexcept {
    graph_ = &graph;
    const WayRows& known = rows_of(graph);
    parts_ = known.branch_parts();
    groups_ = known.groups();
    if constexpr (kCounted) counts_ = known.counts();
  }
  void bits(const Cell& cell) { static_cast<void>(put(cell)); }
  void target(const Cell& cell) {
    const std::size_t last = put(cell);
    if constexpr (kChosen) last_ = last;
    if (last != 0 && to_ != nullptr && (cell.flags & CELL_TARGET) != 0) to_[rows - 1] = cell.ip;
  }
  [[nodiscard]] std::size_t before_target() const noexcept { return rows - (kChosen ? last_ : 1); }
  [[nodiscard]] std::size_t head(const Cell& cell) const noexcept { return parts_[cell.way].head; }
  std::size_t rows;

 private:
  // How many rows the way's last branch is.
  std::size_t put(const Cell& cell) {
    if (cell.way >= parts_.size() || parts_[cell.way].first == 0) [[unlikely]]
      add(cell.way);
    const WayPart& part = parts_[cell.way];
    const RowGroup* group = groups_ + part.first;
    const std::size_t end = rows + (kChosen ? part.rows & (WayPart::kLast - 1U) : part.rows);
    for (std::size_t at = rows; at < end; at += RowGroup::kRows, ++group) {
      if (from_ != nullptr) std::memcpy(from_ + at, group->from.data(), sizeof group->from);
      if (to_ != nullptr) std::memcpy(to_ + at, group->to.data(), sizeof group->to);
      if (kind_ != nullptr) std::memcpy(kind_ + at, group->kind.data(), sizeof group->kind);
      if (flags_ != nullptr) std::memcpy(flags_ + at, group->flags.data(), sizeof group->flags);
    }
    if constexpr (kCounted) put_counts(counts_ + part.first, end, cell.insns);
    rows = end;
    return kChosen && (part.rows & WayPart::kLast) == 0 ? 0 : 1;
  }
  void put_counts(const GroupCounts* counts, std::size_t end, std::uint32_t insns) noexcept {
    for (std::size_t at = rows; at < end; at += RowGroup::kRows, ++counts) {
      for (std::size_t i = 0; i < RowGroup::kRows; ++i) instruction_[at + i] = retired_ + (*counts)[i];
    }
    retired_ += insns;
  }
  [[nodiscard]] const WayRows& rows_of(DecisionGraph& graph) const {
    if constexpr (kChosen) return graph.chosen_rows(choice_);
    return graph.way_rows();
  }
  [[gnu::noinline]] void add(WayId way) {
    if constexpr (kChosen) {
      graph_->add_way_branches(way, choice_);
    } else {
      graph_->add_way_branches(way);
    }
    begin(*graph_);
  }

  DecisionGraph* graph_ = nullptr;
  std::span<const WayPart> parts_;
  const RowGroup* groups_ = nullptr;
  const GroupCounts* counts_ = nullptr;
  std::size_t last_ = 1;  // of a target's rows: its own
  BranchChoice choice_;
  std::uint64_t* from_;
  std::uint64_t* to_;
  std::uint8_t* kind_;
  std::uint8_t* flags_;
  std::uint64_t* instruction_;
  std::uint64_t retired_;  // instructions of the stream so far; kCounted
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
  static constexpr bool kMayBeNone = false;
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
  [[nodiscard]] std::size_t head(const Cell& cell) const noexcept { return insns_->head(cell.way); }
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
  static constexpr bool kMayBeNone = false;
  explicit BlockRows(const BulkRoom& room)
      : rows(room.row),
        ip_(room.ip),
        bytes_(room.bytes),
        insns_(room.insns),
        instruction_(room.instruction),
        retired_(room.first_instruction) {}
  void begin(DecisionGraph& graph) noexcept {
    graph_ = &graph;
    parts_ = graph.way_rows().block_parts();
    blocks_ = graph.way_rows().blocks();
  }
  void bits(const Cell& cell) {
    if (cell.way >= parts_.size() || parts_[cell.way].first == 0) [[unlikely]]
      add(cell.way);
    const WayPart& part = parts_[cell.way];
    const WayBlock* block = blocks_ + part.first;
    for (const WayBlock* const end = block + part.rows; block != end; ++block, ++rows) {
      if (ip_ != nullptr) ip_[rows] = block->ip;
      if (bytes_ != nullptr) bytes_[rows] = block->bytes;
      if (insns_ != nullptr) insns_[rows] = block->insns;
      if (instruction_ != nullptr) {
        instruction_[rows] = retired_;
        retired_ += block->insns;
      }
    }
  }
  void target(const Cell& cell) { bits(cell); }
  [[nodiscard]] std::size_t before_target() const noexcept { return rows; }
  [[nodiscard]] std::size_t head(const Cell& cell) const noexcept { return parts_[cell.way].head; }
  std::size_t rows;

 private:
  [[gnu::noinline]] void add(WayId way) {
    graph_->add_way_blocks(way);
    begin(*graph_);
  }

  DecisionGraph* graph_ = nullptr;
  std::span<const WayPart> parts_;
  const WayBlock* blocks_ = nullptr;
  std::uint64_t* ip_;
  std::uint32_t* bytes_;
  std::uint32_t* insns_;
  std::uint64_t* instruction_;
  std::uint64_t retired_;  // instructions of the stream so far, where they are asked for
};

}  // namespace ptkit::flow
