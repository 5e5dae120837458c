// Facts of a branch by its source and target, in a direct-mapped cache: branches repeat. It grows while edges
// displace each other.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/rows/bulk.h"
#include "tables/calls/code/code_facts.h"

namespace ptkit::tables::calls {

// Bits beside those of CodeFlag, which are of the target.
enum EdgeFlag : std::uint32_t {
  EDGE_RETPOLINE = 1U << 13U,  // the source is the call of a retpoline
  EDGE_TAIL = 1U << 14U,       // to the entry of another function
  EDGE_INNER = 1U << 15U,      // source and target are in one function
  EDGE_NO_CODE = 1U << 22U,    // the trace has no code at the target, and no name
  EDGE_PLAIN = 1U << 23U,      // to where a function begins that has no rules of its own
};

// Edges with one of these have rules beside that of calls, and that of jumps to another function.
inline constexpr unsigned kOwnRules = CODE_STUB | CODE_THUNK | CODE_RETURN | CODE_RESOLVER | CODE_SETJMP |
                                      CODE_SWITCH | CODE_LEAVE | CODE_MCALL | CODE_TASK_SWITCH |
                                      CODE_SCHEDULER | CODE_TASK_END | EDGE_RETPOLINE | EDGE_NO_CODE;

struct EdgeFacts {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t next = 0;                     // address after the branch
  std::uint32_t function = kUnknownFunction;  // that a call enters
  std::uint32_t flags = 0;
  std::uint64_t code = 0;  // EdgeCache: 1 + number of the code version; 0: the slot is free

  [[nodiscard]] bool is(unsigned flag) const noexcept { return (flags & flag) != 0; }
};

// Whether a jump leaves a function for another one.
[[nodiscard]] inline bool is_tail(const CodeLocation& from, const CodeLocation& to) noexcept {
  if (to.is(CODE_STUB)) return !from.is(CODE_STUB);
  return to.is(CODE_ENTRY) && !to.is(CODE_COLD) && from.function != to.function;
}

class EdgeCache {
 public:
  explicit EdgeCache(CodeFacts& facts) : facts_(facts), slots_(kLeastSlots) {}

  // Valid until the next call.
  [[nodiscard]] const EdgeFacts& at(std::uint64_t from, std::uint64_t to) {
    EdgeFacts& slot = slots_[flow::edge_hash(from, to) & (slots_.size() - 1)];
    if (slot.from != from || slot.to != to || slot.code != code_) [[unlikely]]
      return find(from, to);
    return slot;
  }
  // The following edges are of this code.
  void follow(const CodeVersion& version) noexcept { code_ = std::uint64_t{1} + version.number; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return slots_.capacity() * sizeof(EdgeFacts); }

 private:
  static constexpr std::size_t kLeastSlots = std::size_t{1} << 12U;
  static constexpr std::size_t kMostSlots = std::size_t{1} << 17U;

  [[nodiscard]] EdgeFacts& slot_of(std::uint64_t from, std::uint64_t to) noexcept {
    return slots_[flow::edge_hash(from, to) & (slots_.size() - 1)];
  }
  void grow() {
    std::vector<EdgeFacts> old(slots_.size() * 2);
    std::swap(old, slots_);
    displaced_ = 0;
    for (const EdgeFacts& one : old) {
      if (one.code != 0) slot_of(one.from, one.to) = one;
    }
  }
  [[gnu::noinline]] const EdgeFacts& find(std::uint64_t from, std::uint64_t to) {
    if (slot_of(from, to).code == code_ && ++displaced_ > slots_.size() / 4 && slots_.size() < kMostSlots)
      grow();
    EdgeFacts& slot = slot_of(from, to);
    const CodeLocation source = facts_.at(from);
    const CodeLocation target = facts_.at(to);
    slot = {from, to, facts_.end_of(from), facts_.function_at(to), target.flags, code_};
    if (is_tail(source, target)) slot.flags |= EDGE_TAIL;
    if (!target.is(CODE_KNOWN) && !facts_.has_code(to)) slot.flags |= EDGE_NO_CODE;
    if (source.is(CODE_KNOWN) && source.function == target.function) slot.flags |= EDGE_INNER;
    const bool is_inside = slot.is(EDGE_INNER) && !slot.is(CODE_ENTRY);
    const bool may_branch = is_inside || source.is(CODE_THUNK) || !source.is(CODE_KNOWN);
    if (may_branch && facts_.is_retpoline_call(from)) slot.flags |= EDGE_RETPOLINE;
    if (is_inside && facts_.begins_retpoline(to)) slot.flags |= CODE_THUNK;
    const bool is_begin = slot.is(CODE_ENTRY) || !(slot.is(CODE_KNOWN) || slot.is(EDGE_INNER));
    if (is_begin && !slot.is(kOwnRules) && slot.next != 0 && slot.next != to) slot.flags |= EDGE_PLAIN;
    return slot;
  }

  CodeFacts& facts_;
  std::vector<EdgeFacts> slots_;
  std::uint64_t code_ = 1;     // of the edges that are looked up: see EdgeFacts
  std::size_t displaced_ = 0;  // edges of that code, since the table has this size
};

}  // namespace ptkit::tables::calls
