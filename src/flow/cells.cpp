#include "flow/cells.h"

#include <bit>
#include <utility>

namespace ptkit::flow {

BitCells::BitCells(base::Arena& arena) : cells_(arena), taken_(arena), owners_(arena) { reach(0); }

std::size_t BitCells::bytes() const noexcept {
  return cells_.capacity() * sizeof(Cell) + taken_.capacity() * sizeof(std::uint64_t) +
         owners_.capacity() * sizeof(NodeId);
}

// All cells behind the base can be asked for.
void BitCells::reach(std::size_t base) {
  constexpr std::size_t kStep = 1024;
  if (base + kPatterns <= cells_.size()) return;
  const std::size_t size = (base + kPatterns) / kStep * kStep + kStep;
  cells_.resize(size);
  taken_.resize(size / 64 + 1);
  owners_.resize(size, kNobody);
}

std::uint32_t BitCells::add_node(NodeId id) {
  // Nodes have three to four cells, as a rule.
  constexpr std::size_t kCells = 4;
  reach(next_ + kCells);
  while (owners_[next_] != kNobody) reach(++next_);
  owners_[next_] = id;
  const auto base = static_cast<std::uint32_t>(next_ * sizeof(Cell));
  next_ += kCells;
  return base;
}

bool BitCells::fits(std::size_t base, const Pattern& pattern) const noexcept {
  if (owners_[base] != kNobody) return false;
  const std::size_t word = base / 64;
  const unsigned shift = base % 64;
  const auto window = [&](std::size_t at) {
    return shift == 0 ? taken_[at] : taken_[at] >> shift | taken_[at + 1] << (64 - shift);
  };
  return ((window(word) & pattern.low) | (window(word + 1) & pattern.high)) == 0;
}

std::size_t BitCells::find_base(const Pattern& pattern) {
  constexpr std::size_t kTries = 256;
  std::size_t base = fit_;
  for (std::size_t tries = 0;; ++base, ++tries) {
    reach(base);
    if (fits(base, pattern)) break;
    if (tries == kTries) fit_ += kTries / 4;
  }
  return base;
}

std::size_t BitCells::move(NodeId id, std::size_t from, Pattern pattern, std::uint32_t bits) {
  const Pattern old = pattern;
  (bits < 64 ? pattern.low : pattern.high) |= std::uint64_t{1} << bits % 64;
  const std::size_t to = find_base(pattern);
  owners_[to] = id;
  const auto move_all = [&](std::uint64_t set, std::uint32_t first) {
    for (; set != 0; set &= set - 1) {
      const std::uint32_t at = first + static_cast<std::uint32_t>(std::countr_zero(set));
      Cell& cell = cells_[to + at];
      cell = std::exchange(cells_[from + at], Cell{});
      cell.from = static_cast<std::uint32_t>(to * sizeof(Cell));
      taken_[(from + at) / 64] &= ~(std::uint64_t{1} << (from + at) % 64);
      taken_[(to + at) / 64] |= std::uint64_t{1} << (to + at) % 64;
    }
  };
  move_all(old.low, 0);
  move_all(old.high, 64);
  return to;
}

Cell& BitCells::add(NodeId id, std::uint32_t& base, std::uint32_t bits) {
  std::size_t first = base / sizeof(Cell);
  const auto is_taken = [&](std::size_t at) { return (taken_[at / 64] >> at % 64 & 1U) != 0; };
  if (is_taken(first + bits)) {
    Pattern pattern;
    for (std::uint32_t i = 0; i < kPatterns; ++i) {
      if (cells_[first + i].from != base) continue;
      (i < 64 ? pattern.low : pattern.high) |= std::uint64_t{1} << i % 64;
    }
    first = move(id, first, pattern, bits);
    base = static_cast<std::uint32_t>(first * sizeof(Cell));
  }
  const std::size_t at = first + bits;
  taken_[at / 64] |= std::uint64_t{1} << at % 64;
  cells_[at].from = base;
  return cells_[at];
}

Cell& TargetCells::find(std::uint64_t ip, std::uint32_t from) {
  Cell* const begin = cells_.data();
  std::size_t at = (place(ip, from) & mask()) / sizeof(Cell);
  for (;; at = (at + 2) & (cells_.size() - 1)) {
    for (const std::size_t slot : {at, at ^ 1U}) {
      Cell& cell = begin[slot];
      if (cell.from == 0 || (cell.ip == ip && cell.from == from)) return cell;
    }
  }
}

bool TargetCells::make_room() {
  if ((count_ + 1) * 2 <= cells_.size()) return false;
  Cells old(cells_.size() * 2, cells_.get_allocator());
  old.swap(cells_);
  for (const Cell& one : old) {
    if (one.from != 0) find(one.ip, one.from) = one;
  }
  return true;
}

}  // namespace ptkit::flow
