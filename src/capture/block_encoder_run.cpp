// The short way: blocks that are known, and ways between them that were told before.
#include <algorithm>

#include "capture/block_encoder_state.h"
#include "capture/block_path.h"

namespace ptkit::capture {

namespace {

using insn::InsnClass;
using insn::InsnKind;
using Kind = HotBlock::Kind;

Kind kind_of(const GuestBlock& block) {
  switch (block.end.cls) {
    case InsnClass::OTHER:
    case InsnClass::PTWRITE:
      return block.repeats ? Kind::REPEAT : Kind::PLAIN;
    case InsnClass::COND_JUMP:
      return Kind::PLAIN;
    case InsnClass::JUMP:
      return block.end.kind == InsnKind::JMPABS ? Kind::SLOW : Kind::PLAIN;
    case InsnClass::CALL:
      // One to the next instruction is no call to a trace unit.
      return block.target == block.next ? Kind::PLAIN : Kind::CALL;
    case InsnClass::JUMP_INDIRECT:
      return Kind::JUMP_INDIRECT;
    case InsnClass::CALL_INDIRECT:
      return Kind::CALL_INDIRECT;
    case InsnClass::RETURN:
      return Kind::RETURN;
    default:
      return Kind::SLOW;
  }
}

// What runs of blocks add to the counters.
constexpr std::uint64_t instructions_of(std::uint64_t counts) { return counts & (HotBlock::kBranch - 1); }
constexpr std::uint64_t branches_of(std::uint64_t counts) { return counts / HotBlock::kBranch; }

// Tells the end of a block that needs more than a TNT bit; false: the simple way has to.
inline bool step(softpt::Lane& lane, softpt::PendingBits& pending, const HotBlock& from, std::uint32_t number,
                 const HotBlock& to, std::uint64_t& counts) {
  switch (from.kind) {
    case Kind::CALL:
      if (number != from.other) return false;
      lane.call(from.pc + from.size);
      break;
    case Kind::REPEAT:
      if (number != from.other) return false;
      --counts;  // counted when it has ended
      break;
    case Kind::RETURN:
    case Kind::JUMP_INDIRECT:
    case Kind::CALL_INDIRECT:
      // A block that begins inside of the one before it may be what was left of it.
      if (to.kind == Kind::SLOW || to.pc - from.pc < from.size) {
        if (to.kind == Kind::SLOW || to.pc != from.pc || from.kind == Kind::CALL_INDIRECT) return false;
      }
      if (from.kind == Kind::RETURN) {
        lane.ret(pending, to.pc);
        break;
      }
      if (from.kind == Kind::CALL_INDIRECT) lane.call(from.pc + from.size);
      lane.tip(pending, to.pc);
      break;
    case Kind::SLOW:
    case Kind::PLAIN:
      return false;
  }
  counts += from.counts;
  return true;
}

}  // namespace

void BlockEncoder::State::close_lane() {
  if (!std::exchange(lane_open, false)) return;
  unit.unit().take_back(lane);
}

void BlockEncoder::State::learn_block(std::uint32_t number) {
  if (number >= hot.size()) hot.resize(std::max<std::size_t>(code.size(), 2 * hot.size()));
  HotBlock& entry = hot[number];
  if (entry.pc != 0) return;
  const GuestBlock& block = code[number];
  const std::uint64_t size = block.next - block.pc;
  entry.pc = block.pc;
  entry.size = static_cast<std::uint16_t>(size);
  if (entry.size != size || block.single) return;
  if (rules != nullptr && (!rules->plain(block.pc) || !rules->points(block.pc, block.next).empty())) return;
  entry.kind = kind_of(block);
  entry.bits = block.end.cls == InsnClass::COND_JUMP ? 1 : 0;
  entry.counts = block.insns + (ends_in_branch(block) ? HotBlock::kBranch : 0);
}

void BlockEncoder::State::learn_way(std::uint32_t from, std::uint32_t to, bool repeated) {
  if (from >= hot.size()) return;
  HotBlock& entry = hot[from];
  const GuestBlock& block = code[from];
  switch (entry.kind) {
    case Kind::PLAIN:
    case Kind::REPEAT: {
      if (repeated) {
        entry.other = to;
        return;
      }
      const bool taken = entry.bits != 0 && code[to].pc == block.target && block.target != block.next;
      entry.next[taken ? 1 : 0] = to;
      return;
    }
    case Kind::CALL:
      entry.other = to;
      return;
    default:
      return;
  }
}

template <bool kTimed>
std::size_t BlockEncoder::State::run_as(std::span<const std::uint32_t> numbers) {
  if (numbers.empty() || last >= hot.size()) return 0;
  softpt::PendingBits pending = lane.pending();
  const HotBlock* const table = hot.data();
  const std::size_t known = hot.size();
  const HotBlock* from = &table[last];
  std::uint64_t counts = 0;
  std::size_t done = 0;
  while (done < numbers.size() && lane.has_room()) {
    lane.make_room(pending);
    const std::size_t stop = std::min(numbers.size(), done + softpt::Lane::kSteps);
    for (; done < stop; ++done) {
      const std::uint32_t number = numbers[done];
      if (number >= known) break;
      const HotBlock* const to = &table[number];
      // Which of the two it is nobody can predict: a product asks for both without a branch.
      const std::uint64_t behind = number ^ from->next[0];
      const std::uint64_t taken = number ^ from->next[1];
      if (behind * taken == 0) {
        pending.add(taken == 0 ? 1 : 0, from->bits);
        counts += from->counts;
      } else if (!step(lane, pending, *from, number, *to, counts)) {
        break;
      }
      if constexpr (kTimed) lane.settle(pending);
      from = to;
    }
    if (done < stop) break;
  }
  lane.set_pending(pending);
  last = static_cast<std::uint32_t>(from - table);
  instructions += instructions_of(counts);
  branches += branches_of(counts);
  return done;
}

template std::size_t BlockEncoder::State::run_as<true>(std::span<const std::uint32_t>);
template std::size_t BlockEncoder::State::run_as<false>(std::span<const std::uint32_t>);

}  // namespace ptkit::capture
