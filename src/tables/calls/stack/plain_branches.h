// Branches that are most of all, where nothing but the usual rule of NearBranches applies to them: calls of
// functions, returns to the caller, direct tail calls, and jumps within a function.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tables/calls/stack/near_branches.h"

namespace ptkit::tables::calls {

struct PlainBranch {
  std::uint64_t from_ip = 0;
  std::uint64_t to_ip = 0;
  flow::BranchKind kind = flow::BranchKind::COND;
  std::uint8_t flags = 0;  // flow::RowFlag
};

class PlainBranches {
 public:
  PlainBranches(CurrentStack& current, Tails tails) : current_(current), tails_(tails) {}

  // Does what NearBranches does. False: nothing was done, as more than one rule may apply.
  template <typename PositionOf>
  [[nodiscard]] bool take(const PlainBranch& branch, const PositionOf& position_of) {
    constexpr unsigned kBothKnown = flow::FROM_KNOWN | flow::TO_KNOWN;
    if ((branch.flags & (kBothKnown | flow::IN_TX)) != kBothKnown || !is_plain(position_of)) return false;
    switch (branch.kind) {
      case flow::BranchKind::CALL:
      case flow::BranchKind::CALL_INDIRECT:
        return call(branch, position_of);
      case flow::BranchKind::RETURN:
        return end_call(branch.to_ip, position_of);
      case flow::BranchKind::JUMP_INDIRECT:
        return stays(edge_of(branch));
      case flow::BranchKind::COND:
      case flow::BranchKind::JUMP:
        return (branch.flags & flow::TAKEN) == 0 || stays(edge_of(branch)) || tail(branch, position_of);
      default:
        return false;
    }
  }

 private:
  [[nodiscard]] ThreadStack& stack() noexcept { return current_.stack(); }
  [[nodiscard]] const EdgeFacts& edge_of(const PlainBranch& branch) {
    return current_.code().edges().at(branch.from_ip, branch.to_ip);
  }
  // No rule depends on what came before, or on the function at the top.
  template <typename PositionOf>
  [[nodiscard]] bool is_plain(const PositionOf& position_of) {
    ThreadStack& stack = current_.stack();
    return current_.code().is_known_at(position_of) && current_.code().inlines() == nullptr &&
           !stack.empty() && stack.top().open == 0 && !stack.in_stub() && !stack.off_cpu().is_off() &&
           !current_.in_leaf();
  }
  [[nodiscard]] static bool stays(const EdgeFacts& edge) noexcept {
    return (edge.flags & (EDGE_INNER | EDGE_NO_CODE)) == EDGE_INNER;
  }
  template <typename PositionOf>
  [[nodiscard]] StreamPosition after(const PositionOf& position_of) const {
    return after_branch(current_.local(position_of()));
  }

  template <typename PositionOf>
  [[nodiscard]] bool call(const PlainBranch& branch, const PositionOf& position_of) {
    const EdgeFacts& edge = edge_of(branch);
    if (!edge.is(EDGE_PLAIN) || !current_.has_room()) return false;
    current_.push_plain([&](OpenFrame& frame) {
      frame.how = CallKind::CALL;
      frame.flags = FRAME_EXACT | FRAME_BEGIN_SEEN | FRAME_CALL | FRAME_ENTRY | FRAME_RETURN;
      frame.call_ip = branch.from_ip;
      frame.entry_ip = branch.to_ip;
      frame.return_ip = edge.next;
      frame.function = edge.function;
      frame.begin = after(position_of);
    });
    return true;
  }

  // Frames that jumped to the one at the top end, too. One has to be left.
  template <typename PositionOf>
  [[nodiscard]] bool end_call(std::uint64_t to_ip, const PositionOf& position_of) {
    const OpenFrame& top = stack().top();
    if (!top.returns_to(to_ip) || stack().size() - 1 <= top.tails) return false;
    stack().pop_chain(CallEnd::RETURN, after(position_of));
    return true;
  }

  template <typename PositionOf>
  [[nodiscard]] bool tail(const PlainBranch& branch, const PositionOf& position_of) {
    constexpr unsigned kTail = EDGE_PLAIN | EDGE_TAIL;
    const EdgeFacts& edge = edge_of(branch);
    const OpenFrame& top = stack().top();
    if ((edge.flags & kTail) != kTail || edge.function == top.function || !current_.has_room()) return false;
    const std::uint32_t tails = top.tails + 1;
    if (tails_ == Tails::REPLACED || tails > NearBranches::kMostTails) return false;
    const std::uint16_t returns = top.flags & FRAME_RETURN;
    const std::uint64_t return_ip = top.return_ip;
    current_.push_plain([&](OpenFrame& frame) {
      frame.how = CallKind::TAIL;
      frame.flags =
          static_cast<std::uint16_t>(FRAME_EXACT | FRAME_BEGIN_SEEN | FRAME_CALL | FRAME_ENTRY | returns);
      frame.call_ip = branch.from_ip;
      frame.entry_ip = branch.to_ip;
      frame.return_ip = return_ip;
      frame.function = edge.function;
      frame.tails = tails;
      frame.begin = after(position_of);
    });
    return true;
  }

  CurrentStack& current_;
  Tails tails_;
};

}  // namespace ptkit::tables::calls
