// Transition tables of the automaton in path_cache.h: TNT patterns in a double-array trie, TIP targets in a
// hash table. A Transition has all data for counting in half a cache line.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arena.h"

namespace ptkit::flow {

using NodeId = std::uint32_t;
using PathId = std::uint32_t;

enum TransitionFlag : std::uint16_t {
  TRANSITION_CALL = 1,     // TNT: one call is open at the end, which returns to `ip`
  TRANSITION_CALLS = 2,    // the path has calls
  TRANSITION_RETURN = 4,   // TNT: the bit after `used` is a compressed return to a call before the path
  TRANSITION_STUCK = 8,    // TNT: the bit after `used` cannot be used
  TRANSITION_POPS = 16,    // TIP: of a return
  TRANSITION_TARGET = 32,  // TIP: of the path's last branch
  TRANSITION_OFF = 64,     // TIP: packets are disabled
  TRANSITION_NEAR = 128,   // TIP: of an indirect jump or call
  TRANSITION_NEW = 256,    // `count` is 0: the first use has to be noted
};

// The effect of TNT bits or of a TIP at a node.
struct alignas(32) Transition {
  std::uint64_t ip = 0;     // TIP: target; TNT: see TRANSITION_CALL
  std::uint32_t next = 0;   // base of the next node
  std::uint32_t from = 0;   // base of the node; TIP: with the kind of packet in the low bits. 0: free
  std::uint32_t path = 0;   // the path to the next node
  std::uint32_t count = 0;  // number of uses, if edges are counted
  std::uint16_t insns = 0;
  std::uint16_t flags =
      TRANSITION_NEW;  // TransitionFlag bits; above them the number of used bits, if not all

  [[nodiscard]] unsigned used() const noexcept { return flags >> kUsedShift; }
  void set_used(unsigned bits) noexcept { flags = static_cast<std::uint16_t>(flags | bits << kUsedShift); }

 private:
  static constexpr unsigned kUsedShift = 12;
};
static_assert(sizeof(Transition) == 32);

using Transitions = base::ArenaVector<Transition>;

// Double-array trie: TNT transitions of all nodes in one packed array. A node's transition for a TNT pattern
// (with a leading 1) is at base + pattern, between transitions of other nodes. On a collision the node moves
// to another base. No base is reused: a link to an old base finds no transition there, and owner() gives the
// node.
class TntTransitions {
 public:
  static constexpr std::uint32_t kPatterns = 128;  // patterns of a TNT-8 packet without its lowest bit

  explicit TntTransitions(base::Arena& arena);

  // `base` is a byte offset from `first`. The transition belongs to the node only if its `from` is `base`.
  [[nodiscard]] static Transition& at(Transition* first, std::uint32_t base, std::uint32_t bits) noexcept {
    auto* const bytes = reinterpret_cast<std::byte*>(first) + base;
    return *reinterpret_cast<Transition*>(bytes + bits * sizeof(Transition));
  }
  [[nodiscard]] Transition& at(std::uint32_t base, std::uint32_t bits) noexcept {
    return at(transitions_.data(), base, bits);
  }
  [[nodiscard]] NodeId owner(std::uint32_t base) const noexcept { return owners_[base / sizeof(Transition)]; }

  [[nodiscard]] std::uint32_t add_node(NodeId id);  // returns its base
  // Adds a transition for bits that the node has none for. On a collision the node moves, and `base` changes.
  [[nodiscard]] Transition& add(NodeId id, std::uint32_t& base, std::uint32_t bits);

  [[nodiscard]] Transitions& all() noexcept { return transitions_; }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  static constexpr NodeId kNoOwner = ~NodeId{0};
  struct Pattern {  // bitmap of a node's transitions after its base
    std::uint64_t low = 0;
    std::uint64_t high = 0;
  };

  void grow_to(std::size_t base);
  [[nodiscard]] bool fits(std::size_t base, const Pattern& pattern) const noexcept;
  [[nodiscard]] std::size_t find_base(const Pattern& pattern);
  [[nodiscard]] std::size_t move(NodeId id, std::size_t from, Pattern pattern, std::uint32_t bits);

  Transitions transitions_;
  base::ArenaVector<std::uint64_t> taken_;  // bitmap of used transitions
  base::ArenaVector<NodeId> owners_;        // by base, with old bases
  std::size_t next_ = 1;                    // base for a new node
  std::size_t fit_ = 1;                     // the array is nearly full before this base
};

// Hash table of TIP targets.
class TipTransitions {
 public:
  explicit TipTransitions(base::Arena& arena) : transitions_(kFirstSlots, arena) {}

  // The transition, if it is in one of its first four slots (two cache lines). `from`: see Transition.
  [[nodiscard]] static Transition* lookup(Transition* transitions, std::uint64_t mask, std::uint64_t ip,
                                          std::uint32_t from) noexcept {
    const std::uint64_t at = first_slot(ip, from) & mask;
    auto* const bytes = reinterpret_cast<std::byte*>(transitions);
    auto* transition = reinterpret_cast<Transition*>(bytes + at);
    if (transition->ip == ip && transition->from == from) [[likely]]
      return transition;
    transition = reinterpret_cast<Transition*>(bytes + (at ^ sizeof(Transition)));
    if (transition->ip == ip && transition->from == from) [[likely]]
      return transition;
    return lookup_next_line(bytes, (at + 2 * sizeof(Transition)) & mask, ip, from);
  }
  // The transition, or a free slot for it.
  [[nodiscard]] Transition& find(std::uint64_t ip, std::uint32_t from);
  // Makes room for one more transition. True: the table has grown, and all transitions have moved.
  [[nodiscard]] bool make_room();
  void took_free() noexcept { ++count_; }

  [[nodiscard]] Transitions& all() noexcept { return transitions_; }
  [[nodiscard]] std::uint64_t mask() const noexcept { return (transitions_.size() - 1) * sizeof(Transition); }
  [[nodiscard]] std::size_t bytes() const noexcept { return transitions_.capacity() * sizeof(Transition); }

 private:
  [[nodiscard]] static Transition* lookup_next_line(std::byte* bytes, std::uint64_t at, std::uint64_t ip,
                                                    std::uint32_t from) noexcept {
    auto* transition = reinterpret_cast<Transition*>(bytes + at);
    if (transition->ip == ip && transition->from == from) return transition;
    transition = reinterpret_cast<Transition*>(bytes + (at ^ sizeof(Transition)));
    return transition->ip == ip && transition->from == from ? transition : nullptr;
  }
  static constexpr std::size_t kFirstSlots = 1024;  // a power of two

  [[nodiscard]] static std::uint64_t first_slot(std::uint64_t ip, std::uint32_t from) noexcept {
    constexpr unsigned kUpper = 29;
    return ((ip * 0xd6e8feb86659fd93ULL) >> kUpper) + from;
  }

  Transitions transitions_;
  std::size_t count_ = 0;
};

}  // namespace ptkit::flow
