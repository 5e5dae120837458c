#include "flow/fast/fast_loop.h"

#include <bit>
#include <utility>

#include "flow/fast/fast_events.h"
#include "flow/fast/fast_pass.h"

namespace ptkit::flow {
namespace {

// Repairs the transition that led to the node: the node may have moved to another base since.
template <typename Rows, Spans kSpans>
void Pass<Rows, kSpans>::connect(NodeId node) noexcept {
  if (via_ != nullptr) *via_ = paths_.at(node).base;
}

// Slow path of a TNT lookup: builds the transition. Null: the simple decoder has to use the packet.
template <typename Rows, Spans kSpans>
[[gnu::noinline]] Transition* Pass<Rows, kSpans>::find_bits(std::uint32_t base, std::uint32_t bits) {
  const NodeId node = paths_.node_of(base);
  connect(node);
  if (node == 0) return nullptr;
  ++builds_;
  Transition* const found = paths_.bits(node, bits);
  reload();
  return found;
}

template <typename Rows, Spans kSpans>
[[gnu::noinline]] Transition* Pass<Rows, kSpans>::find_target(std::uint32_t base, Packet packet,
                                                              std::uint64_t ip) {
  const NodeId node = paths_.node_of(base);
  connect(node);
  const std::size_t before = paths_.path_count();
  Transition* const found = paths_.target(node, packet, ip, filter_);
  if (paths_.path_count() != before) ++builds_;
  reload();
  return found;
}

// TNT bits that one lookup does not resolve: the pattern has no transition yet, has a compressed return
// (target on the call stack), or is longer than TNT-8. NONE: all bits are used.
//
//   PATTERN --- all bits of the pattern used -------------> next pattern, or NONE at the end
//      |  ^
//      |  +---------------- next bits --------------------+
//      |                                                  |
//      +------- TRANSITION_RETURN: pop the return address, look it up as a TIP
//      `------- TRANSITION_STUCK, empty call stack, no transition ---> REST (PACKET if no bit is used)
template <typename Rows, Spans kSpans>
template <typename Bits>
[[gnu::noinline]] FastStop Pass<Rows, kSpans>::take_bits(Bits bits, std::uint32_t& base,
                                                         std::uint64_t offset) {
  // One more path and one return may follow these rows.
  constexpr std::size_t kMostRows = BulkRoom::kSlack - 4 * std::size_t{PathBuilder::kMostInsns};
  constexpr bool kLong = sizeof(Bits) > sizeof(std::uint32_t);
  const std::size_t first_row = rows_.rows;
  unsigned used = 0;
  const std::uint64_t before = instructions_;
  while (bits > 1) {
    if (kLong && (rows_.rows - first_row > kMostRows || instructions_ - before > kMostRows)) break;
    const std::uint32_t first = first_of(bits);
    Transition* transition = &TntTransitions::at(bits_, base, first);
    if (transition->from != base) {
      if (used == 0 && !may_build()) return builds_ < kMostBuilds ? FastStop::PACKET : FastStop::FULL;
      transition = find_bits(base, first);
      if (transition == nullptr) break;
    }
    const std::size_t path_row = rows_.rows;
    rows_.bits(*transition);
    if (used == 0) note_head(path_row, *transition);
    follow(*transition, base);
    if ((transition->flags & (TRANSITION_CALL | TRANSITION_CALLS)) != 0) apply_calls(*transition);
    const bool all = (transition->flags & (TRANSITION_RETURN | TRANSITION_STUCK)) == 0;
    if (all && (!kLong || first == bits)) return FastStop::NONE;
    const unsigned now = all ? static_cast<unsigned>(std::bit_width(first)) - 1 : transition->used();
    used += now;
    bits = without(bits, now);
    if (all) continue;
    if ((transition->flags & TRANSITION_STUCK) != 0 || calls_.empty()) break;
    const std::uint64_t ip = return_target();
    transition = TipTransitions::lookup(targets_, target_mask_, ip, base);
    if (transition == nullptr)
      transition = find_target(base, Packet::TIP, ip);  // never null here: see PathCache::bits()
    rows_.target(*transition);
    if (used == 0) head_.end = rows_.before_target();
    follow(*transition, base);
    ++used;
    bits = without(bits, 1);
  }
  if (bits == 1) return FastStop::NONE;
  if (used == 0) return FastStop::PACKET;
  state_.rest = bits;
  add_bits_span_runs(offset);
  return FastStop::REST;
}

// A TNT-64 packet.
template <typename Rows, Spans kSpans>
[[gnu::noinline]] FastStop Pass<Rows, kSpans>::take_long(const std::uint8_t* at, std::uint32_t& base) {
  constexpr unsigned kOpcodeBits = 16;
  const auto offset = static_cast<std::uint64_t>(at - base_);
  const std::uint64_t bits = load<std::uint64_t>(at) >> kOpcodeBits;
  if (bits <= 1) return FastStop::PACKET;
  if (const FastStop stop = take_bits(bits, base, offset); stop != FastStop::NONE) return stop;
  tip_order_.tnt(!is_partial_tnt(at));
  add_bits_span_runs(offset);
  since_ = last_;
  last_ = offset;
  return FastStop::NONE;
}

// TNT-8 packets one after the other, the first of them at `at`, where rows are counted. What only the last
// two packets decide is set once, at the end.
template <typename Rows, Spans kSpans>
void Pass<Rows, kSpans>::take_run(const std::uint8_t*& at, const std::uint8_t* end, std::uint32_t& base,
                                  FastStop& stop) {
  constexpr unsigned kPart = TRANSITION_RETURN | TRANSITION_STUCK;
  constexpr unsigned kCalls = TRANSITION_CALL | TRANSITION_CALLS;
  const std::uint8_t* const begin = at;
  std::uint64_t insns = 0;
  std::uint32_t* via = via_;
  std::uint32_t bits = *at >> 1U;
  // The next packet waits for `base`, so that nothing but `base` may be left to add to the transition's
  // address.
  Transition* row = bits_ + bits;
  do {
    Transition& transition = TntTransitions::at(row, base, 0);
    if (transition.from == base && (transition.flags & kPart) == 0) [[likely]] {
      if ((transition.flags & (kCalls | TRANSITION_NEW)) != 0) {
        if ((transition.flags & TRANSITION_NEW) != 0) paths_.note_bits(transition);
        if ((transition.flags & kCalls) != 0) apply_calls(transition);
      }
      rows_.count_bits(transition);
      insns += transition.insns;
      base = transition.next;
      via = &transition.next;
    } else {
      instructions_ += std::exchange(insns, 0);
      via_ = via;
      std::uint32_t next = base;  // `base` itself stays in a register
      stop = take_bits(std::uint32_t{*at} >> 1U, next, static_cast<std::uint64_t>(at - base_));
      base = next;
      via = via_;
      if (stop != FastStop::NONE) break;
    }
    ++at;
    bits = std::rotr(*at, 1);  // 2 to 127 for a TNT-8 packet alone
    row = bits_ + bits;
  } while (bits - 2 < 126 && at < end);
  instructions_ += insns;
  via_ = via;
  end_run(begin, at);
}

// Adds the group at a node. Null: it has to be used packet by packet.
template <typename Rows, Spans kSpans>
[[gnu::noinline]] PacketGroup* Pass<Rows, kSpans>::find_group(std::uint32_t base, std::uint32_t tnt,
                                                              std::uint64_t ip) {
  PacketGroup* const group = paths_.add_group(base, tnt, ip);
  if (group == nullptr && ++lone_ > kMostLone) grouping_ = false;
  return group;
}

// Groups of packets one after the other, the first of them at the position: see packet_groups.h. Not inlined,
// so that the loop keeps its registers where packets are not grouped.
template <typename Rows, Spans kSpans>
[[gnu::noinline]] void Pass<Rows, kSpans>::take_groups(LoopPosition& position, const std::uint8_t* end) {
  auto [at, base, last_ip] = position;
  constexpr std::uint64_t kOddBits =
      0x0101010101010101;                   // a TNT-8 packet is even, the first byte of a TIP odd
  constexpr std::uint64_t kFullTnt = 0x80;  // see is_partial_tnt()
  const std::uint8_t* tip = nullptr;
  std::uint64_t last_tnt = 0;  // of the last group that has TNT packets
  std::uint64_t insns = 0;
  std::uint32_t* via = via_;
  PacketGroup* groups = paths_.groups().data();
  std::uint64_t mask = paths_.groups().mask();
  do {
    const auto word = load<std::uint64_t>(at);
    if ((word & 0xffU) == 0) {
      at += word == 0 ? 8 : std::countr_zero(word) / 8;
      continue;
    }
    if ((word & kOddBits) == 0) break;
    const auto shift = static_cast<unsigned>(std::countr_zero(word & kOddBits));
    const std::uint64_t tnt = word & ((std::uint64_t{1} << shift) - 1);  // PADs before the TIP do not count
    const std::uint8_t first = static_cast<std::uint8_t>(word >> shift);
    if (kTargetPackets[first] != static_cast<std::uint8_t>(Packet::TIP) || tnt > UINT32_MAX) break;
    const std::uint8_t* const next_tip = at + shift / 8;
    const IpForm& form = kIpForms[first >> 5U];
    const std::uint64_t ip = ip_of(form, next_tip, last_ip);
    PacketGroup* group = PacketGroups::lookup(groups, mask, ip, static_cast<std::uint32_t>(tnt), base);
    if (group == nullptr) [[unlikely]] {
      group = find_group(base, static_cast<std::uint32_t>(tnt), ip);
      if (groups != paths_.groups().data()) via = nullptr;  // it may have been in the table that has grown
      if (group == nullptr) break;
      groups = paths_.groups().data();
      mask = paths_.groups().mask();
    }
    if (++group->count <= 1) paths_.note_group(*group);
    insns += group->insns;
    base = group->next;
    via = &group->next;
    last_ip = ip;
    tip = next_tip;
    if (tnt != 0) last_tnt = tnt;
    at = tip + form.size;
  } while (at < end);
  position = {at, base, last_ip};
  via_ = via;
  if (tip == nullptr) return;
  instructions_ += insns;
  since_ = last_ = static_cast<std::uint64_t>(tip - base_);
  if (last_tnt != 0) {
    const bool full = (last_tnt >> ((std::bit_width(last_tnt) - 1U) & ~7U)) >= kFullTnt;
    watch_ = full ? TipWatch::NONE : TipWatch::TIP;
  } else if (watch_ == TipWatch::PARTIAL_TNT) {
    watch_ = TipWatch::TIP;
  }
}

// The state after the TNT-8 packets from `begin` to `at`: what each of them would have set.
template <typename Rows, Spans kSpans>
void Pass<Rows, kSpans>::end_run(const std::uint8_t* begin, const std::uint8_t* at) noexcept {
  if (at == begin) return;
  const auto end = static_cast<std::uint64_t>(at - base_);
  since_ = at - begin > 1 ? end - 2 : last_;
  last_ = end - 1;
  deferred_ = deferred_ && watch_ != TipWatch::TIP;
  watch_ = is_partial_tnt(at - 1) ? TipWatch::PARTIAL_TNT : TipWatch::NONE;
  if (tip_order_.in_order()) return;
  tip_order_.tnt(!is_partial_tnt(begin));  // only the first may follow a TIP
  tip_order_.tnt(!is_partial_tnt(at - 1));
}

// Stores the state for the simple decoder.
template <typename Rows, Spans kSpans>
void Pass<Rows, kSpans>::finish(const std::uint8_t* at, std::uint32_t base, std::uint64_t last_ip) {
  const auto position = static_cast<std::uint64_t>(at - base_);
  room_.used_bytes += position - state_.packets.position;
  state_.packets.last_ip = last_ip;
  state_.events.since = since_;
  state_.events.tnt_before.reset();
  if (last_ != since_) state_.events.tnt_before = last_;
  state_.node = paths_.node_of(base);
  if (last_ >= state_.packets.position) state_.last = last_of(base_ + last_, state_.node != 0);
  state_.packets.position = position;
  state_.events.tip_watch = watch_;
  state_.events.tip_order = tip_order_;
  state_.binder.tips_deferred = deferred_;
  state_.moved = state_.node != 0 || left_ != 0;
  if (left_ != 0) {
    const PathTail& leave = paths_.leave(paths_.paths()[left_]);
    state_.binder.resume_ip = leave.resume_ip;
    state_.end_ip = leave.end_ip;
  }
  room_.row = rows_.rows;
  if constexpr (requires { rows_.branches; }) room_.branches = rows_.branches;
  room_.instructions += instructions_;
}

// The loop runs the automaton of path_cache.h. Its state is the current node, held as `base`.
//
//               +------------------ next node, next packet ------------------------------+
//               v                                                                        |
//   reload() -> NODE --- TNT-8 -------------------- transition found: emit its path -----+
//               |  |                 `------------- else: take_bits() -------------------+
//               |  +---- TIP, TIP.PGE, TIP.PGD ---- transition found: emit its path -----+
//               |  |                 `------------- else: find_target() -----------------+
//               |  +---- TNT-64 ------------------- take_long() -------------------------+
//               |  +---- PSB+, MODE.Exec, FUP ----- take_events() -----------------------+
//               |  +---- PAD, CYC, MTC, TSC, TMA -- skip, same node ---------------------+
//               |
//               +-- any other packet, or a step that fails ---------------> PACKET --+
//               +-- the rest of a TNT packet needs the Walker ------------> REST ----+--> finish()
//               `-- limit of rows, instructions, spans, bytes, built paths --> FULL -+
//
// finish() stores the state for the simple decoder, which uses the next packet after PACKET and REST.
template <typename Rows, Spans kSpans>
FastStop Pass<Rows, kSpans>::run() {
  reload();
  const std::uint8_t* at = base_ + state_.packets.position;
  const std::uint8_t* const stream_end = base_ + state_.end;
  const std::uint8_t* end = stream_end - kWindow;
  if (static_cast<std::uint64_t>(end - at) > kPass && end > at) end = at + kPass;
  std::uint32_t base = paths_.at(state_.node).base;  // base of the node
  std::uint64_t last_ip = state_.packets.last_ip;
  FastStop stop = FastStop::NONE;
  const std::size_t span_limit = kSpans != Spans::NONE ? room_.span_limit - 2 : 0;

  while (at < end) {
    if constexpr (Rows::kBounded) {
      if (rows_.rows >= room_.limit) break;
    }
    if constexpr (Rows::kPhases) {
      if (instructions_ >= room_.most_instructions) break;
    }
    if constexpr (kSpans != Spans::NONE) {
      if (room_.span_count > span_limit) break;
    }
    if constexpr (kCounts) {
      if (grouping_ && !deferred_ && tip_order_.in_order()) {
        LoopPosition position{at, base, last_ip};
        take_groups(position, end);
        at = position.at;
        base = position.base;
        last_ip = position.last_ip;
        if (at >= end) break;
      }
    }
    const std::uint8_t first = *at;
    const auto offset = static_cast<std::uint64_t>(at - base_);
    if ((first & 1U) == 0 && first > 2) {
      // TNT-8
      if constexpr (kCounts) {
        take_run(at, end, base, stop);
        if (stop != FastStop::NONE) break;
        continue;
      }
      const std::uint32_t bits = first >> 1U;
      Transition* const transition = &TntTransitions::at(bits_, base, bits);
      if (transition->from == base && (transition->flags & (TRANSITION_RETURN | TRANSITION_STUCK)) == 0)
          [[likely]] {
        const std::size_t path_row = rows_.rows;
        rows_.bits(*transition);
        note_head(path_row, *transition);
        follow(*transition, base);
        if ((transition->flags & (TRANSITION_CALL | TRANSITION_CALLS)) != 0) apply_calls(*transition);
      } else {
        std::uint32_t next = base;
        stop = take_bits(bits, next, offset);
        base = next;
        if (stop != FastStop::NONE) break;
      }
      add_bits_span_runs(offset);
      since_ = last_;
      last_ = offset;
      deferred_ = deferred_ && watch_ != TipWatch::TIP;
      watch_ = is_partial_tnt(at) ? TipWatch::PARTIAL_TNT : TipWatch::NONE;
      if (!tip_order_.in_order()) [[unlikely]]
        tip_order_.tnt(!is_partial_tnt(at));
      ++at;
      continue;
    }
    if (first == 0) {
      const std::uint64_t word = load<std::uint64_t>(at);
      at += word == 0 ? 8 : std::countr_zero(word) / 8;
      continue;
    }
    if (const std::uint8_t packet = kTargetPackets[first]; packet != kNoTarget) {
      const IpForm& form = kIpForms[first >> 5U];
      const std::uint64_t ip = ip_of(form, at, last_ip);
      const std::uint32_t from = base | packet;
      Transition* transition = TipTransitions::lookup(targets_, target_mask_, ip, from);
      if (transition == nullptr) [[unlikely]] {
        if (builds_ >= kMostBuilds) break;
        transition = find_target(base, static_cast<Packet>(packet), ip);
        if (transition == nullptr) {
          stop = FastStop::PACKET;
          break;
        }
      }
      rows_.target(*transition);
      follow(*transition, base);
      if ((transition->flags & (TRANSITION_CALLS | TRANSITION_POPS | TRANSITION_OFF)) != 0) {
        if ((transition->flags & TRANSITION_CALLS) != 0) apply_calls(*transition);
        if ((transition->flags & TRANSITION_POPS) != 0) calls_.return_by_tip();
        if ((transition->flags & TRANSITION_OFF) != 0) {
          calls_.flush();
          left_ = transition->path;
        }
      }
      if (form.size != 1) last_ip = ip;
      at = kCounts ? after_ip_packet(at) : at + form.size;
      if (packet == static_cast<std::uint8_t>(Packet::TIP)) {
        if (watch_ == TipWatch::PARTIAL_TNT) watch_ = TipWatch::TIP;
        if (!tip_order_.in_order()) [[unlikely]] {
          tip_order_.tip((transition->flags & TRANSITION_NEAR) != 0);
          if (last_ != since_) {  // it follows a TNT packet, so it may be deferred
            add_span_run(rows_.rows, since_, offset);
            last_ = offset;
            continue;
          }
        }
        add_span_run(rows_.before_target(), since_, offset);
        add_span_run(rows_.rows, offset, offset);
      } else {
        if (packet != static_cast<std::uint8_t>(Packet::PGE)) add_span_run(rows_.rows, since_, offset);
        ++room_.events;
        if constexpr (Rows::kMarks) {
          if (packet != static_cast<std::uint8_t>(Packet::PGE)) {
            mark_disabled(offset);
          } else if (form.size != 1) {
            mark_enabled(ip, offset);
          }
        }
        if constexpr (Rows::kEvents) add_event(*transition, form.size != 1, ip, offset);
        watch_ = TipWatch::NONE;
        tip_order_.other();
      }
      since_ = last_ = offset;
      continue;
    }
    if (is_long_tnt(at)) {
      std::uint32_t next = base;
      stop = take_long(at, next);
      base = next;
      if (stop != FastStop::NONE) break;
      at += kLongTntSize;
    } else if (skip_timing(at)) {
      if (!is_cyc(first)) tip_order_.other();
    } else {
      LoopPosition position{at, base, last_ip};
      if (!take_events(position)) {
        stop = FastStop::PACKET;
        break;
      }
      at = position.at;
      base = position.base;
      last_ip = position.last_ip;
    }
    watch_ = TipWatch::NONE;
  }
  if (stop == FastStop::NONE) {
    stop = at >= end && end == stream_end - kWindow ? FastStop::PACKET : FastStop::FULL;
  }
  finish(at, base, last_ip);
  return stop;
}

template <typename Rows>
FastStop pass(PathCache& paths, const AddressFilter& filter, CallStack& calls, const std::uint8_t* base,
              FastState& state, BulkRoom& room) {
  if (room.spans == nullptr) return Pass<Rows, Spans::NONE>(paths, filter, calls, base, state, room).run();
  if (room.first_bits) return Pass<Rows, Spans::FIRST_BITS>(paths, filter, calls, base, state, room).run();
  return Pass<Rows, Spans::PACKETS>(paths, filter, calls, base, state, room).run();
}

}  // namespace

FastStop FastLoop::run(PathCache& paths, FastState& state, BulkRoom& room) {
  if (state.end < state.packets.position + kWindow) return FastStop::PACKET;
  const std::uint8_t* const base = stream_.data();
  switch (room.kind) {
    case BulkRows::EDGES:
      if (room.most_instructions != UINT64_MAX)
        return Pass<PhaseRows, Spans::NONE>(paths, filter_, calls_, base, state, room).run();
      return pass<EdgeRows>(paths, filter_, calls_, base, state, room);
    case BulkRows::BRANCHES:
      if (room.number != nullptr)
        return pass<BranchRows<true, true, true>>(paths, filter_, calls_, base, state, room);
      if (room.instruction != nullptr) {
        return room.choice == BranchChoice{}
                   ? pass<BranchRows<false, true>>(paths, filter_, calls_, base, state, room)
                   : pass<BranchRows<true, true>>(paths, filter_, calls_, base, state, room);
      }
      return room.choice == BranchChoice{}
                 ? pass<BranchRows<false, false>>(paths, filter_, calls_, base, state, room)
                 : pass<BranchRows<true, false>>(paths, filter_, calls_, base, state, room);
    case BulkRows::BLOCKS:
      return pass<BlockRows>(paths, filter_, calls_, base, state, room);
    case BulkRows::INSTRUCTIONS:
      return pass<InsnRows>(paths, filter_, calls_, base, state, room);
    case BulkRows::EVENTS:
      return Pass<EventRows, Spans::NONE>(paths, filter_, calls_, base, state, room).run();
    case BulkRows::NONE:
      break;
  }
  return pass<NoRows>(paths, filter_, calls_, base, state, room);
}

}  // namespace ptkit::flow
