#include "flow/fast/transitions.h"

#include <bit>
#include <utility>

namespace ptkit::flow {

TntTransitions::TntTransitions(base::Arena& arena) : transitions_(arena), taken_(arena), owners_(arena) {
  grow_to(0);
}

std::size_t TntTransitions::bytes() const noexcept {
  return transitions_.capacity() * sizeof(Transition) + taken_.capacity() * sizeof(std::uint64_t) +
         owners_.capacity() * sizeof(NodeId);
}

// Grows the array so that all patterns of `base` are in it.
void TntTransitions::grow_to(std::size_t base) {
  constexpr std::size_t kStep = 1024;
  if (base + kPatterns <= transitions_.size()) return;
  const std::size_t size = (base + kPatterns) / kStep * kStep + kStep;
  transitions_.resize(size);
  taken_.resize(size / 64 + 1);
  owners_.resize(size, kNoOwner);
}

std::uint32_t TntTransitions::add_node(NodeId id) {
  // A node usually has three to four transitions.
  constexpr std::size_t kTransitions = 4;
  grow_to(next_ + kTransitions);
  while (owners_[next_] != kNoOwner) grow_to(++next_);
  owners_[next_] = id;
  const auto base = static_cast<std::uint32_t>(next_ * sizeof(Transition));
  next_ += kTransitions;
  return base;
}

bool TntTransitions::fits(std::size_t base, const Pattern& pattern) const noexcept {
  if (owners_[base] != kNoOwner) return false;
  const std::size_t word = base / 64;
  const unsigned shift = base % 64;
  const auto window = [&](std::size_t at) {
    return shift == 0 ? taken_[at] : taken_[at] >> shift | taken_[at + 1] << (64 - shift);
  };
  return ((window(word) & pattern.low) | (window(word + 1) & pattern.high)) == 0;
}

std::size_t TntTransitions::find_base(const Pattern& pattern) {
  constexpr std::size_t kTries = 256;
  std::size_t base = fit_;
  for (std::size_t tries = 0;; ++base, ++tries) {
    grow_to(base);
    if (fits(base, pattern)) break;
    if (tries == kTries) fit_ += kTries / 4;
  }
  return base;
}

std::size_t TntTransitions::move(NodeId id, std::size_t from, Pattern pattern, std::uint32_t bits) {
  const Pattern old = pattern;
  (bits < 64 ? pattern.low : pattern.high) |= std::uint64_t{1} << bits % 64;
  const std::size_t to = find_base(pattern);
  owners_[to] = id;
  const auto move_all = [&](std::uint64_t set, std::uint32_t first) {
    for (; set != 0; set &= set - 1) {
      const std::uint32_t at = first + static_cast<std::uint32_t>(std::countr_zero(set));
      Transition& transition = transitions_[to + at];
      transition = std::exchange(transitions_[from + at], Transition{});
      transition.from = static_cast<std::uint32_t>(to * sizeof(Transition));
      taken_[(from + at) / 64] &= ~(std::uint64_t{1} << (from + at) % 64);
      taken_[(to + at) / 64] |= std::uint64_t{1} << (to + at) % 64;
    }
  };
  move_all(old.low, 0);
  move_all(old.high, 64);
  return to;
}

Transition& TntTransitions::add(NodeId id, std::uint32_t& base, std::uint32_t bits) {
  std::size_t first = base / sizeof(Transition);
  const auto is_taken = [&](std::size_t at) { return (taken_[at / 64] >> at % 64 & 1U) != 0; };
  if (is_taken(first + bits)) {
    Pattern pattern;
    for (std::uint32_t i = 0; i < kPatterns; ++i) {
      if (transitions_[first + i].from != base) continue;
      (i < 64 ? pattern.low : pattern.high) |= std::uint64_t{1} << i % 64;
    }
    first = move(id, first, pattern, bits);
    base = static_cast<std::uint32_t>(first * sizeof(Transition));
  }
  const std::size_t at = first + bits;
  taken_[at / 64] |= std::uint64_t{1} << at % 64;
  transitions_[at].from = base;
  return transitions_[at];
}

Transition& TipTransitions::find(std::uint64_t ip, std::uint32_t from) {
  Transition* const begin = transitions_.data();
  std::size_t at = (first_slot(ip, from) & mask()) / sizeof(Transition);
  for (;; at = (at + 2) & (transitions_.size() - 1)) {
    for (const std::size_t slot : {at, at ^ 1U}) {
      Transition& transition = begin[slot];
      if (transition.from == 0 || (transition.ip == ip && transition.from == from)) return transition;
    }
  }
}

bool TipTransitions::make_room() {
  if ((count_ + 1) * 2 <= transitions_.size()) return false;
  Transitions old(transitions_.size() * 2, transitions_.get_allocator());
  old.swap(transitions_);
  for (const Transition& one : old) {
    if (one.from != 0) find(one.ip, one.from) = one;
  }
  return true;
}

}  // namespace ptkit::flow
