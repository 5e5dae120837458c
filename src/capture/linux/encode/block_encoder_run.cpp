// The fast path: known blocks, and transitions between them that the slow path encoded before.
#include <algorithm>

#include "capture/linux/encode/block_encoder_state.h"
#include "capture/linux/encode/block_path.h"

namespace ptkit::capture {

namespace {

using code::insn::InsnClass;
using code::insn::InsnKind;
using BlockKind = HotBlock::Kind;

BlockKind kind_of(const GuestBlock& block) {
  switch (block.end.cls) {
    case InsnClass::OTHER:
    case InsnClass::PTWRITE:
      return block.repeats ? BlockKind::REPEAT : BlockKind::PLAIN;
    case InsnClass::COND_JUMP:
      return BlockKind::PLAIN;
    case InsnClass::JUMP:
      return block.end.kind == InsnKind::JMPABS ? BlockKind::SLOW : BlockKind::PLAIN;
    case InsnClass::CALL:
      // A CALL to the next instruction is no CALL for RET compression.
      return block.target == block.next ? BlockKind::PLAIN : BlockKind::CALL;
    case InsnClass::JUMP_INDIRECT:
      return BlockKind::JUMP_INDIRECT;
    case InsnClass::CALL_INDIRECT:
      return BlockKind::CALL_INDIRECT;
    case InsnClass::RETURN:
      return BlockKind::RETURN;
    default:
      return BlockKind::SLOW;
  }
}

// The two counts in HotBlock::counts.
constexpr std::uint64_t instructions_of(std::uint64_t counts) { return counts & (HotBlock::kBranch - 1); }
constexpr std::uint64_t branches_of(std::uint64_t counts) { return counts / HotBlock::kBranch; }

// Encodes the end of a block that needs more than a TNT bit or a push. Returns false if the slow path has to
// encode it.
inline bool step(trace_unit::generator::FastEncoder& fast_encoder,
                 trace_unit::generator::PendingBits& pending, const HotBlock& from, std::uint32_t number,
                 const HotBlock& to, std::uint64_t& counts) {
  switch (from.kind) {
    case BlockKind::REPEAT:
      if (number != from.other) return false;
      --counts;  // the string instruction counts after its last iteration
      break;
    case BlockKind::RETURN:
    case BlockKind::JUMP_INDIRECT:
    case BlockKind::CALL_INDIRECT:
      // A block that begins inside its predecessor may be the rest of that block.
      if (to.kind == BlockKind::SLOW || to.pc - from.pc < from.size) {
        if (to.kind == BlockKind::SLOW || to.pc != from.pc || from.kind == BlockKind::CALL_INDIRECT)
          return false;
      }
      if (from.kind == BlockKind::RETURN) {
        fast_encoder.ret(pending, to.pc);
        break;
      }
      if (from.kind == BlockKind::CALL_INDIRECT) fast_encoder.call(from.pc + from.size);
      fast_encoder.tip(pending, to.pc);
      break;
    case BlockKind::SLOW:
    case BlockKind::PLAIN:
    case BlockKind::CALL:
      return false;
  }
  counts += from.counts;
  return true;
}

}  // namespace

void BlockEncoder::State::close_fast_path() {
  if (!std::exchange(fast_path_open, false)) return;
  tracer.generator().end_fast_path(fast_encoder);
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
  entry.bits = block.end.cls == InsnClass::COND_JUMP ? -1 : 0;
  entry.counts = block.insns + (ends_in_branch(block) ? HotBlock::kBranch : 0);
}

void BlockEncoder::State::learn_transition(std::uint32_t from, std::uint32_t to, bool repeated) {
  if (from >= hot.size()) return;
  HotBlock& entry = hot[from];
  const GuestBlock& block = code[from];
  switch (entry.kind) {
    case BlockKind::PLAIN:
    case BlockKind::REPEAT: {
      if (repeated) {
        entry.other = to;
        return;
      }
      const bool taken = entry.bits != 0 && code[to].pc == block.target && block.target != block.next;
      entry.next[taken ? 1 : 0] = to;
      return;
    }
    case BlockKind::CALL:
      entry.other = to;
      return;
    default:
      return;
  }
}

std::size_t BlockEncoder::State::run(std::span<const std::uint32_t> numbers) {
  if (numbers.empty() || last >= hot.size()) return 0;
  trace_unit::generator::PendingBits pending = fast_encoder.pending();
  const HotBlock* const table = hot.data();
  const std::size_t known = hot.size();
  const HotBlock* from = &table[last];
  std::uint64_t counts = 0;
  std::size_t done = 0;
  while (done < numbers.size() && fast_encoder.has_room()) {
    fast_encoder.make_room(pending);
    const std::size_t stop = std::min(numbers.size(), done + trace_unit::generator::FastEncoder::kSteps);
    for (; done < stop; ++done) {
      const std::uint32_t number = numbers[done];
      if (number >= known) break;
      const HotBlock* const to = &table[number];
      // The direction is hard to predict. The product is 0 if either successor matches: a single conditional
      // branch that does not depend on the direction.
      const std::uint64_t fall_through = number ^ from->next[0];
      const std::uint64_t taken = number ^ from->next[1];
      if (fall_through * taken == 0) {
        pending.add_if(static_cast<std::uint64_t>(std::int64_t{from->bits}), taken == 0 ? 1 : 0);
        counts += from->counts;
      } else if (from->kind == BlockKind::CALL && number == from->other) {
        fast_encoder.call(from->pc + from->size);
        counts += from->counts;
      } else {
        // Copies, as what step() changes would be in memory for the whole loop.
        trace_unit::generator::PendingBits bits = pending;
        std::uint64_t more = counts;
        if (!step(fast_encoder, bits, *from, number, *to, more)) break;
        pending = bits;
        counts = more;
      }
      from = to;
    }
    if (done < stop) break;
  }
  fast_encoder.set_pending(pending);
  last = static_cast<std::uint32_t>(from - table);
  instructions += instructions_of(counts);
  branches += branches_of(counts);
  return done;
}

}  // namespace ptkit::capture
