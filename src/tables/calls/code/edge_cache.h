// Facts of a branch by its source and target, in a direct-mapped cache: branches repeat.
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
  EDGE_SET = 1U << 31U,        // the slot of an EdgeCache is in use
};

struct EdgeFacts {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t next = 0;                     // address after the branch
  std::uint32_t function = kUnknownFunction;  // that a call enters
  std::uint32_t flags = 0;

  [[nodiscard]] bool is(unsigned flag) const noexcept { return (flags & flag) != 0; }
};

// Whether a jump leaves a function for another one.
[[nodiscard]] inline bool is_tail(const CodeLocation& from, const CodeLocation& to) noexcept {
  if (to.is(CODE_STUB)) return !from.is(CODE_STUB);
  return to.is(CODE_ENTRY) && !to.is(CODE_COLD) && from.function != to.function;
}

class EdgeCache {
 public:
  explicit EdgeCache(CodeFacts& facts) : facts_(facts), slots_(kSlots) {}

  // Valid until the next call.
  [[nodiscard]] const EdgeFacts& at(std::uint64_t from, std::uint64_t to) {
    EdgeFacts& slot = slots_[flow::edge_hash(from, to) & (kSlots - 1)];
    if (slot.from != from || slot.to != to || !slot.is(EDGE_SET)) find(from, to, slot);
    return slot;
  }
  void clear() noexcept { slots_.assign(kSlots, EdgeFacts{}); }

 private:
  static constexpr std::size_t kSlots = std::size_t{1} << 12U;

  [[gnu::noinline]] void find(std::uint64_t from, std::uint64_t to, EdgeFacts& slot) {
    const CodeLocation source = facts_.at(from);
    const CodeLocation target = facts_.at(to);
    slot = {from, to, facts_.end_of(from), facts_.function_at(to), target.flags | EDGE_SET};
    if (is_tail(source, target)) slot.flags |= EDGE_TAIL;
    if (!target.is(CODE_KNOWN) && !facts_.has_code(to)) slot.flags |= EDGE_NO_CODE;
    if (source.is(CODE_KNOWN) && source.function == target.function) slot.flags |= EDGE_INNER;
    const bool is_inside = slot.is(EDGE_INNER) && !slot.is(CODE_ENTRY);
    const bool may_branch = is_inside || source.is(CODE_THUNK) || !source.is(CODE_KNOWN);
    if (may_branch && facts_.is_retpoline_call(from)) slot.flags |= EDGE_RETPOLINE;
    if (is_inside && facts_.begins_retpoline(to)) slot.flags |= CODE_THUNK;
  }

  CodeFacts& facts_;
  std::vector<EdgeFacts> slots_;
};

}  // namespace ptkit::tables::calls
