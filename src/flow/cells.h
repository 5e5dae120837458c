// The tables that the hot loop looks packets up in. A cell has all that counting needs, in half a cache line.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"

namespace ptkit::flow {

using NodeId = std::uint32_t;
using WayId = std::uint32_t;

enum CellFlag : std::uint8_t {
  CELL_CALL = 1,     // bits: one call, which returns to `ip`, is open at the end
  CELL_CALLS = 2,    // calls: see the way
  CELL_RETURN = 4,   // bits: the one after `used` stands for a return whose call lies before
  CELL_STUCK = 8,    // bits: the one after `used` cannot be used
  CELL_POPS = 16,    // target: of a return
  CELL_TARGET = 32,  // target: of the way's last branch
  CELL_OFF = 64,     // target: packets go off
  CELL_NEAR = 128,   // target: of an indirect jump or call
};

// What a packet does from a node: TNT bits, or a target.
struct alignas(32) Cell {
  std::uint64_t ip = 0;     // target; bits: see CELL_CALL
  std::uint32_t next = 0;   // base of the node where it leads
  std::uint32_t from = 0;   // base of the node where it begins; target: and the kind of packet. 0: free
  std::uint32_t way = 0;    // what lies between
  std::uint32_t count = 0;  // how often it was gone, where edges are counted
  std::uint16_t insns = 0;
  std::uint8_t used = 0;  // bits, where not all of them are
  std::uint8_t flags = 0;
};
static_assert(sizeof(Cell) == 32);

using Cells = base::ArenaVector<Cell>;

// Cells of bits, packed: those of a node stand `bits` cells behind its base (bits with a leading 1), between
// those of others. A node that needs a cell where another one is gets another base. No base is used twice:
// who comes to an old one finds no cell there, and asks.
class BitCells {
 public:
  static constexpr std::uint32_t kPatterns = 128;  // a TNT-8 packet without its lowest bit

  explicit BitCells(base::Arena& arena);

  // A base is told in bytes. The cell is the node's if it is `from` there.
  [[nodiscard]] static Cell& at(Cell* first, std::uint32_t base, std::uint32_t bits) noexcept {
    auto* const bytes = reinterpret_cast<std::byte*>(first) + base;
    return *reinterpret_cast<Cell*>(bytes + bits * sizeof(Cell));
  }
  [[nodiscard]] Cell& at(std::uint32_t base, std::uint32_t bits) noexcept {
    return at(cells_.data(), base, bits);
  }
  [[nodiscard]] NodeId owner(std::uint32_t base) const noexcept { return owners_[base / sizeof(Cell)]; }

  [[nodiscard]] std::uint32_t add_node(NodeId id);  // its base
  // A cell for bits that the node has none for. It may have to move: `base` is then another one.
  [[nodiscard]] Cell& add(NodeId id, std::uint32_t& base, std::uint32_t bits);

  [[nodiscard]] Cells& all() noexcept { return cells_; }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  static constexpr NodeId kNobody = ~NodeId{0};
  struct Pattern {  // of cells behind a base
    std::uint64_t low = 0;
    std::uint64_t high = 0;
  };

  void reach(std::size_t base);
  [[nodiscard]] bool fits(std::size_t base, const Pattern& pattern) const noexcept;
  [[nodiscard]] std::size_t find_base(const Pattern& pattern);
  [[nodiscard]] std::size_t move(NodeId id, std::size_t from, Pattern pattern, std::uint32_t bits);

  Cells cells_;
  base::ArenaVector<std::uint64_t> taken_;  // a bit for each cell
  base::ArenaVector<NodeId> owners_;        // of bases, also of those that were left
  std::size_t next_ = 1;                    // base for a new node
  std::size_t fit_ = 1;                     // before it, cells are as good as full
};

// A hash table of targets.
class TargetCells {
 public:
  explicit TargetCells(base::Arena& arena) : cells_(kFirstSlots, arena) {}

  // `from`: see Cell. The cell, if it is in one of its four first places: two cache lines.
  [[nodiscard]] static Cell* look(Cell* cells, std::uint64_t mask, std::uint64_t ip,
                                  std::uint32_t from) noexcept {
    const std::uint64_t at = place(ip, from) & mask;
    auto* const bytes = reinterpret_cast<std::byte*>(cells);
    auto* cell = reinterpret_cast<Cell*>(bytes + at);
    if (cell->ip == ip && cell->from == from) [[likely]]
      return cell;
    cell = reinterpret_cast<Cell*>(bytes + (at ^ sizeof(Cell)));
    if (cell->ip == ip && cell->from == from) [[likely]]
      return cell;
    return look_behind(bytes, (at + 2 * sizeof(Cell)) & mask, ip, from);
  }
  // The cell, or a free one.
  [[nodiscard]] Cell& find(std::uint64_t ip, std::uint32_t from);
  // A free one for a cell that is not there. True: all cells have moved.
  [[nodiscard]] bool make_room();
  void took_free() noexcept { ++count_; }

  [[nodiscard]] Cells& all() noexcept { return cells_; }
  [[nodiscard]] std::uint64_t mask() const noexcept { return (cells_.size() - 1) * sizeof(Cell); }
  [[nodiscard]] std::size_t bytes() const noexcept { return cells_.capacity() * sizeof(Cell); }

 private:
  [[nodiscard]] static Cell* look_behind(std::byte* bytes, std::uint64_t at, std::uint64_t ip,
                                         std::uint32_t from) noexcept {
    auto* cell = reinterpret_cast<Cell*>(bytes + at);
    if (cell->ip == ip && cell->from == from) return cell;
    cell = reinterpret_cast<Cell*>(bytes + (at ^ sizeof(Cell)));
    return cell->ip == ip && cell->from == from ? cell : nullptr;
  }
  static constexpr std::size_t kFirstSlots = 1024;  // a power of two

  [[nodiscard]] static std::uint64_t place(std::uint64_t ip, std::uint32_t from) noexcept {
    constexpr unsigned kUpper = 29;
    return ((ip * 0xd6e8feb86659fd93ULL) >> kUpper) + from;
  }

  Cells cells_;
  std::size_t count_ = 0;
};

}  // namespace ptkit::flow
