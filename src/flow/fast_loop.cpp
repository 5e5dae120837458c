#include "flow/fast_loop.h"

#include <algorithm>
#include <array>
#include <bit>

#include "flow/fast_rows.h"
#include "flow/plain_packets.h"
#include "flow/walker.h"

namespace ptkit::flow {

namespace {

constexpr std::size_t kWindow = 16;         // bytes that may be read behind a packet's first
constexpr std::uint64_t kPass = 1U << 18U;  // bytes of stream after which the caller looks around
constexpr unsigned kMostBuilds = 2048;      // ways found in one pass: finding takes time, too

// EventDecoder::TipWatch
constexpr std::uint8_t kNoWatch = 0;
constexpr std::uint8_t kPartialTnt = 1;
constexpr std::uint8_t kTip = 2;  // after such a TNT packet

// By a packet's first byte: which DecisionGraph::Packet it is.
constexpr std::uint8_t kNoTarget = 0xff;
constexpr std::array<std::uint8_t, 256> kTargetPackets = [] {
  using Packet = DecisionGraph::Packet;
  std::array<std::uint8_t, 256> out{};
  out.fill(kNoTarget);
  for (unsigned form = 0; form < kIpForms.size(); ++form) {
    if (kIpForms[form].size == 0) continue;
    const auto put = [&](std::uint8_t kind, Packet packet) {
      out[form << 5U | kind] = static_cast<std::uint8_t>(packet);
    };
    put(kPgdKind, form == 0 ? Packet::PGD_NO_IP : Packet::PGD);
    if (form == 0) continue;
    put(kTipKind, Packet::TIP);
    put(kPgeKind, Packet::PGE);
  }
  return out;
}();

// Bits behind the first `count`.
template <typename Bits>
Bits without(Bits bits, unsigned count) noexcept {
  const Bits first = std::bit_floor(bits) >> count;
  return (bits & (first - 1)) | first;
}

// As many of the first bits as a cell can have.
std::uint32_t first_of(std::uint32_t bits) noexcept { return bits; }
std::uint32_t first_of(std::uint64_t bits) noexcept {
  constexpr unsigned kMostWidth = 7;  // with the leading 1
  const auto width = static_cast<unsigned>(std::bit_width(bits));
  return static_cast<std::uint32_t>(bits >> (std::max(width, kMostWidth) - kMostWidth));
}

// What the last packet that decides was; of a PSB+, its PSBEND.
FastLast last_of(const std::uint8_t* at, bool on) noexcept {
  if (is_long_tnt(at)) return FastLast::BRANCH;
  if (*at == kEscape) return on ? FastLast::ENABLED : FastLast::DISABLED;
  switch (kTargetPackets[*at]) {
    case static_cast<std::uint8_t>(DecisionGraph::Packet::PGE):
      return FastLast::ENABLED;
    case static_cast<std::uint8_t>(DecisionGraph::Packet::PGD):
    case static_cast<std::uint8_t>(DecisionGraph::Packet::PGD_NO_IP):
      return FastLast::DISABLED;
    default:
      return FastLast::BRANCH;
  }
}

// Which places of rows are wanted: see BulkRoom.
enum class Places : std::uint8_t { NONE, PACKETS, FIRST_BITS };

// One pass. Locals of run() are to stay in registers; what may lie in memory is here.
template <typename Rows, Places kPlaces>
class Pass {
 public:
  Pass(DecisionGraph& graph, const AddressFilter& filter, CallStack& calls, const std::uint8_t* base,
       FastState& state, BulkRoom& room)
      : graph_(graph),
        filter_(filter),
        calls_(calls),
        base_(base),
        state_(state),
        room_(room),
        rows_(room),
        since_(state.since),
        last_(state.tnt_before != FastState::kNone ? state.tnt_before : state.since),
        placed_(room.row),
        watch_(state.tip_watch),
        deferred_(state.tips_deferred),
        tip_order_(state.tip_order) {}

  FastStop run();

 private:
  using Packet = DecisionGraph::Packet;

  // Building may move the tables.
  void reload() noexcept {
    rows_.begin(graph_);
    bits_ = graph_.bit_cells().data();
    targets_ = graph_.target_cells().data();
    target_mask_ = graph_.target_mask();
  }
  void place(std::size_t row_end, std::uint64_t since, std::uint64_t offset) noexcept {
    if constexpr (kPlaces == Places::NONE) return;
    if constexpr (Rows::kMayBeNone) {
      if (row_end == placed_) return;
      placed_ = row_end;
    }
    room_.places[room_.place_count++] = {since, offset, row_end};
  }
  // The way of bits was put, from row `begin` on; it has the packet's first bit.
  void note_head(std::size_t begin, const Cell& cell) noexcept {
    if constexpr (kPlaces == Places::NONE) return;
    if (kPlaces == Places::FIRST_BITS || head_since() != last_) head_ = {begin, begin + rows_.head(cell)};
  }
  // Since when rows before the first bit of the next TNT packet may have happened: EventDecoder::begin().
  [[nodiscard]] std::uint64_t head_since() const noexcept {
    return may_be_late(base_ + last_) ? since_ : last_;
  }
  // Of the rows of the TNT packet after `last_`.
  void place_bits(std::uint64_t offset) noexcept {
    if constexpr (kPlaces == Places::NONE) return;
    const std::uint64_t since = head_since();
    if (kPlaces == Places::FIRST_BITS || since != last_) {
      if (head_.end != head_.begin) place(head_.end, since, offset | time::Question::kBeforeFirstBit);
    }
    place(rows_.rows, last_, offset);
  }
  void go(Cell& cell, std::uint32_t& base) noexcept {
    instructions_ += cell.insns;
    base = cell.next;
    via_ = &cell;
  }
  // Not inline, so that the hot loop keeps its registers.
  [[gnu::noinline]] void apply_calls(const Cell& cell) {
    if ((cell.flags & CELL_CALL) != 0) return calls_.call(cell.ip);
    const Way& way = graph_.ways()[cell.way];
    calls_.call(graph_.pushed() + way.push, way.pushes, way.depth);
  }
  void finish(const std::uint8_t* at, std::uint32_t base, std::uint64_t last_ip);
  template <typename Bits>
  [[nodiscard]] FastStop take_bits(Bits bits, std::uint32_t& base, std::uint64_t offset);
  [[nodiscard]] FastStop take_long(const std::uint8_t* at, std::uint32_t& base);
  [[nodiscard]] Cell* find_bits(std::uint32_t base, std::uint32_t bits);
  [[nodiscard]] Cell* find_target(std::uint32_t base, Packet packet, std::uint64_t ip);
  [[nodiscard]] bool take_psb(const std::uint8_t*& at, std::uint32_t& base, std::uint64_t& last_ip);
  [[nodiscard]] std::uint64_t return_target() {
    BlockCache& cache = graph_.cache();
    return calls_.return_by_tnt([&cache](std::uint64_t ip) { return cache.at(ip).end != RunEnd::FAIL; });
  }
  [[nodiscard]] bool may_build() const noexcept { return builds_ < kMostBuilds && !graph_.cache().too_big(); }
  void connect(NodeId node) noexcept;

  DecisionGraph& graph_;
  const AddressFilter& filter_;
  CallStack& calls_;
  const std::uint8_t* base_;
  FastState& state_;
  BulkRoom& room_;
  Rows rows_;
  Cell* bits_ = nullptr;
  Cell* targets_ = nullptr;
  std::uint64_t target_mask_ = 0;
  Cell* via_ = nullptr;  // through which the node was reached
  std::uint64_t instructions_ = 0;
  // What the next packet tells may have happened since `since_`; bits of a TNT packet, since `last_`.
  std::uint64_t since_;
  std::uint64_t last_;
  struct {
    std::size_t begin = 0;
    std::size_t end = 0;
  } head_;              // rows of the TNT packet before its first bit
  std::size_t placed_;  // rows that have a place, where packets may have none
  WayId left_ = 0;      // through which packets went off last
  unsigned builds_ = 0;
  std::uint8_t watch_;
  bool deferred_;
  TipOrder tip_order_;
};

// The node may have got another base since `via_` was told of it.
template <typename Rows, Places kPlaces>
void Pass<Rows, kPlaces>::connect(NodeId node) noexcept {
  if (via_ != nullptr) via_->next = graph_.at(node).base;
}

// What the hot loop did not find at once. Null: it is for the simple decoder.
template <typename Rows, Places kPlaces>
[[gnu::noinline]] Cell* Pass<Rows, kPlaces>::find_bits(std::uint32_t base, std::uint32_t bits) {
  const NodeId node = graph_.node_of(base);
  connect(node);
  if (node == 0) return nullptr;
  ++builds_;
  Cell* const found = graph_.bits(node, bits);
  reload();
  return found;
}

template <typename Rows, Places kPlaces>
[[gnu::noinline]] Cell* Pass<Rows, kPlaces>::find_target(std::uint32_t base, Packet packet,
                                                         std::uint64_t ip) {
  const NodeId node = graph_.node_of(base);
  connect(node);
  const std::size_t before = graph_.way_count();
  Cell* const found = graph_.target(node, packet, ip, filter_);
  if (graph_.way_count() != before) ++builds_;
  reload();
  return found;
}

// Bits of a TNT packet that are not known yet, with returns whose targets lie on the stack, or more than a
// TNT-8 packet has. NONE: all were used.
template <typename Rows, Places kPlaces>
template <typename Bits>
[[gnu::noinline]] FastStop Pass<Rows, kPlaces>::take_bits(Bits bits, std::uint32_t& base,
                                                          std::uint64_t offset) {
  // Rows of one more way, and of a return, can follow.
  constexpr std::size_t kMostRows = BulkRoom::kSlack - 4 * std::size_t{WayBuilder::kMostInsns};
  constexpr bool kLong = sizeof(Bits) > sizeof(std::uint32_t);
  const std::size_t first_row = rows_.rows;
  unsigned used = 0;
  const std::uint64_t before = instructions_;
  while (bits > 1) {
    if (kLong && rows_.rows - first_row > kMostRows) break;
    const std::uint32_t first = first_of(bits);
    Cell* cell = &BitCells::at(bits_, base, first);
    if (cell->from != base) {
      if (used == 0 && !may_build()) return builds_ < kMostBuilds ? FastStop::PACKET : FastStop::FULL;
      cell = find_bits(base, first);
      if (cell == nullptr) break;
    }
    const std::size_t way_row = rows_.rows;
    rows_.bits(*cell);
    if (used == 0) note_head(way_row, *cell);
    go(*cell, base);
    if ((cell->flags & (CELL_CALL | CELL_CALLS)) != 0) apply_calls(*cell);
    const bool all = (cell->flags & (CELL_RETURN | CELL_STUCK)) == 0;
    if (all && (!kLong || first == bits)) return FastStop::NONE;
    const unsigned now = all ? static_cast<unsigned>(std::bit_width(first)) - 1 : cell->used;
    used += now;
    bits = without(bits, now);
    if (all) continue;
    if ((cell->flags & CELL_STUCK) != 0 || calls_.empty()) break;
    const std::uint64_t ip = return_target();
    cell = TargetCells::look(targets_, target_mask_, ip, base);
    if (cell == nullptr) cell = find_target(base, Packet::TIP, ip);  // it can be: see DecisionGraph::bits()
    rows_.target(*cell);
    if (used == 0) head_.end = rows_.before_target();
    go(*cell, base);
    ++used;
    bits = without(bits, 1);
  }
  if (bits == 1) return FastStop::NONE;
  if (used == 0) return FastStop::PACKET;
  state_.rest = bits;
  state_.instructions_before = before;
  place_bits(offset);
  return FastStop::REST;
}

// A TNT-64 packet.
template <typename Rows, Places kPlaces>
[[gnu::noinline]] FastStop Pass<Rows, kPlaces>::take_long(const std::uint8_t* at, std::uint32_t& base) {
  constexpr unsigned kOpcodeBits = 16;
  const auto offset = static_cast<std::uint64_t>(at - base_);
  const std::uint64_t bits = load<std::uint64_t>(at) >> kOpcodeBits;
  if (bits <= 1) return FastStop::PACKET;
  if (const FastStop stop = take_bits(bits, base, offset); stop != FastStop::NONE) return stop;
  tip_order_.tnt(!is_partial_tnt(at));
  place_bits(offset);
  since_ = last_;
  last_ = offset;
  return FastStop::NONE;
}

// A PSB+ that repeats what is known: Placer::status(), and events that change nothing. False: it does not.
template <typename Rows, Places kPlaces>
[[gnu::noinline]] bool Pass<Rows, kPlaces>::take_psb(const std::uint8_t*& at, std::uint32_t& base,
                                                     std::uint64_t& last_ip) {
  if (static_cast<std::uint64_t>(at - base_) > state_.last_psb || !may_build()) return false;
  PsbHeader header;
  if (!read_psb(at, base_ + state_.end - kWindow, state_.known, header)) return false;
  if (header.on != (graph_.node_of(base) != 0)) return false;
  const auto offset = static_cast<std::uint64_t>(header.psbend - base_);
  if (header.on) {
    Cell* const cell = find_target(base, Packet::PSB, header.ip);
    if (cell == nullptr) return false;
    rows_.target(*cell);
    instructions_ += cell->insns;
    base = cell->next;
    via_ = cell;
    place(rows_.rows, since_, offset);
  }
  calls_.flush();
  tip_order_.other();
  last_ip = header.ip;
  since_ = last_ = offset;
  room_.events += header.events;
  ++state_.psbs;
  at = header.psbend + kPsbendSize;
  return true;
}

// What is handed back.
template <typename Rows, Places kPlaces>
void Pass<Rows, kPlaces>::finish(const std::uint8_t* at, std::uint32_t base, std::uint64_t last_ip) {
  const auto position = static_cast<std::uint64_t>(at - base_);
  room_.used_bytes += position - state_.position;
  state_.last_ip = last_ip;
  state_.since = since_;
  state_.tnt_before = last_ != since_ ? last_ : FastState::kNone;
  state_.node = graph_.node_of(base);
  if (last_ >= state_.position) state_.last = last_of(base_ + last_, state_.node != 0);
  state_.position = position;
  state_.tip_watch = watch_;
  state_.tips_deferred = deferred_;
  state_.tip_order = tip_order_;
  state_.moved = state_.node != 0 || left_ != 0;
  if (left_ != 0) {
    const WayTail& leave = graph_.leave(graph_.ways()[left_]);
    state_.resume_ip = leave.resume_ip;
    state_.end_ip = leave.end_ip;
  }
  room_.row = rows_.rows;
  room_.instructions += instructions_;
}

template <typename Rows, Places kPlaces>
FastStop Pass<Rows, kPlaces>::run() {
  reload();
  const std::uint8_t* at = base_ + state_.position;
  const std::uint8_t* const stream_end = base_ + state_.end;
  const std::uint8_t* end = stream_end - kWindow;
  if (static_cast<std::uint64_t>(end - at) > kPass && end > at) end = at + kPass;
  std::uint32_t base = graph_.at(state_.node).base;  // the node's
  std::uint64_t last_ip = state_.last_ip;
  FastStop stop = FastStop::NONE;
  const std::size_t place_limit = kPlaces != Places::NONE ? room_.place_limit - 2 : 0;

  while (at < end) {
    if constexpr (Rows::kBounded) {
      if (rows_.rows >= room_.limit) break;
    }
    if constexpr (kPlaces != Places::NONE) {
      if (room_.place_count > place_limit) break;
    }
    const std::uint8_t first = *at;
    const auto offset = static_cast<std::uint64_t>(at - base_);
    if ((first & 1U) == 0 && first > 2) {
      // TNT-8
      const std::uint32_t bits = first >> 1U;
      Cell* const cell = &BitCells::at(bits_, base, bits);
      if (cell->from == base && (cell->flags & (CELL_RETURN | CELL_STUCK)) == 0) [[likely]] {
        const std::size_t way_row = rows_.rows;
        rows_.bits(*cell);
        note_head(way_row, *cell);
        go(*cell, base);
        if ((cell->flags & (CELL_CALL | CELL_CALLS)) != 0) apply_calls(*cell);
      } else if (stop = take_bits(bits, base, offset); stop != FastStop::NONE) {
        break;
      }
      place_bits(offset);
      since_ = last_;
      last_ = offset;
      deferred_ = deferred_ && watch_ != kTip;
      watch_ = is_partial_tnt(at) ? kPartialTnt : kNoWatch;
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
      Cell* cell = TargetCells::look(targets_, target_mask_, ip, from);
      if (cell == nullptr) [[unlikely]] {
        if (builds_ >= kMostBuilds) break;
        cell = find_target(base, static_cast<Packet>(packet), ip);
        if (cell == nullptr) {
          stop = FastStop::PACKET;
          break;
        }
      }
      rows_.target(*cell);
      go(*cell, base);
      if ((cell->flags & CELL_CALLS) != 0) apply_calls(*cell);
      if ((cell->flags & CELL_POPS) != 0) calls_.return_by_tip();
      if ((cell->flags & CELL_OFF) != 0) {
        calls_.flush();
        left_ = cell->way;
      }
      if (form.size != 1) last_ip = ip;
      at += form.size;
      if (packet == static_cast<std::uint8_t>(Packet::TIP)) {
        if (watch_ == kPartialTnt) watch_ = kTip;
        if (!tip_order_.in_order()) [[unlikely]] {
          tip_order_.tip((cell->flags & CELL_NEAR) != 0);
          if (last_ != since_) {  // after a TNT packet: it may have been deferred
            place(rows_.rows, since_, offset);
            last_ = offset;
            continue;
          }
        }
        place(rows_.before_target(), since_, offset);
        place(rows_.rows, offset, offset);
      } else {
        if (packet != static_cast<std::uint8_t>(Packet::PGE)) place(rows_.rows, since_, offset);
        ++room_.events;
        watch_ = kNoWatch;
        tip_order_.other();
      }
      since_ = last_ = offset;
      continue;
    }
    if (is_long_tnt(at)) {
      stop = take_long(at, base);
      if (stop != FastStop::NONE) break;
      at += kLongTntSize;
    } else if (skip_timing(at)) {
      if (!is_cyc(first)) tip_order_.other();
    } else if (!take_psb(at, base, last_ip)) {
      stop = FastStop::PACKET;
      break;
    }
    watch_ = kNoWatch;
  }
  if (stop == FastStop::NONE) {
    stop = at >= end && end == stream_end - kWindow ? FastStop::PACKET : FastStop::FULL;
  }
  finish(at, base, last_ip);
  return stop;
}

template <typename Rows>
FastStop pass(DecisionGraph& graph, const AddressFilter& filter, CallStack& calls, const std::uint8_t* base,
              FastState& state, BulkRoom& room) {
  if (room.places == nullptr) return Pass<Rows, Places::NONE>(graph, filter, calls, base, state, room).run();
  if (room.first_bits) return Pass<Rows, Places::FIRST_BITS>(graph, filter, calls, base, state, room).run();
  return Pass<Rows, Places::PACKETS>(graph, filter, calls, base, state, room).run();
}

}  // namespace

FastStop FastLoop::run(DecisionGraph& graph, FastState& state, BulkRoom& room) {
  if (state.end < state.position + kWindow) return FastStop::PACKET;
  const std::uint8_t* const base = stream_.data();
  switch (room.kind) {
    case BulkRows::EDGES:
      return room.in_order ? pass<EdgeRows>(graph, filter_, calls_, base, state, room)
                           : pass<UsedRows>(graph, filter_, calls_, base, state, room);
    case BulkRows::BRANCHES:
      if (room.instruction != nullptr) {
        return room.choice == BranchChoice{}
                   ? pass<BranchRows<false, true>>(graph, filter_, calls_, base, state, room)
                   : pass<BranchRows<true, true>>(graph, filter_, calls_, base, state, room);
      }
      return room.choice == BranchChoice{}
                 ? pass<BranchRows<false, false>>(graph, filter_, calls_, base, state, room)
                 : pass<BranchRows<true, false>>(graph, filter_, calls_, base, state, room);
    case BulkRows::BLOCKS:
      return pass<BlockRows>(graph, filter_, calls_, base, state, room);
    case BulkRows::INSTRUCTIONS:
      return pass<InsnRows>(graph, filter_, calls_, base, state, room);
    case BulkRows::NONE:
      break;
  }
  return pass<NoRows>(graph, filter_, calls_, base, state, room);
}

}  // namespace ptkit::flow
