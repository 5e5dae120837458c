#include "flow/fast_loop.h"

#include <array>
#include <bit>
#include <cstring>

#include "flow/fast_rows.h"
#include "flow/walker.h"

namespace ptkit::flow {

namespace {

constexpr std::size_t kWindow = 16;         // bytes that may be read behind a packet's first
constexpr std::uint64_t kPass = 1U << 18U;  // bytes of stream after which the caller looks around
constexpr unsigned kMostBuilds = 2048;      // ways found in one pass: finding takes time, too

// EventDecoder::TipWatch
constexpr std::uint8_t kNoWatch = 0;
constexpr std::uint8_t kPartialTnt = 1;
constexpr std::uint8_t kTip = 2;          // after such a TNT packet
constexpr std::uint8_t kFullTnt8 = 0x80;  // a TNT-8 packet with its six bits is at least this

// IP packets: kinds are the low five bits, the form of the IP the others.
constexpr std::uint8_t kTipKind = 0x0d;
constexpr std::uint8_t kPgeKind = 0x11;
constexpr std::uint8_t kPgdKind = 0x01;

struct IpForm {
  std::uint64_t take = 0;  // bits that come from the packet
  std::uint64_t keep = 0;  // from the last IP
  std::uint8_t size = 0;   // of the packet; 0: reserved
  std::uint8_t shift = 0;  // sign extension
};
constexpr std::uint64_t kBits48 = 0xffffffffffffULL;
constexpr std::array<IpForm, 8> kIpForms = {{
    {0, 0, 1, 0},
    {0xffff, ~0xffffULL, 3, 0},
    {0xffffffff, ~0xffffffffULL, 5, 0},
    {kBits48, 0, 7, 16},
    {kBits48, ~kBits48, 7, 0},
    {},
    {~0ULL, 0, 9, 0},
    {},
}};

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

template <typename T>
T load(const std::uint8_t* at) noexcept {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint64_t ip_of(const IpForm& form, const std::uint8_t* at, std::uint64_t last) noexcept {
  const std::uint64_t raw = (load<std::uint64_t>(at + 1) & form.take) | (last & form.keep);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(raw << form.shift) >> form.shift);
}

// Bits behind the first `count`.
std::uint32_t without(std::uint32_t bits, unsigned count) noexcept {
  const unsigned left = static_cast<unsigned>(std::bit_width(bits)) - 1 - count;
  return (bits & ((1U << left) - 1)) | 1U << left;
}

FastLast last_of(std::uint8_t first) noexcept {
  switch (kTargetPackets[first]) {
    case static_cast<std::uint8_t>(DecisionGraph::Packet::PGE):
      return FastLast::ENABLED;
    case static_cast<std::uint8_t>(DecisionGraph::Packet::PGD):
    case static_cast<std::uint8_t>(DecisionGraph::Packet::PGD_NO_IP):
      return FastLast::DISABLED;
    default:
      return FastLast::BRANCH;
  }
}

// Skips a packet that tells time, False: it is another one.
bool timing(const std::uint8_t*& at) noexcept {
  constexpr std::uint8_t kMtc = 0x59;
  constexpr std::uint8_t kTsc = 0x19;
  constexpr std::uint8_t kTma = 0x73;
  constexpr std::size_t kMostCyc = 15;  // longer ones are an error, or at the edge of it
  const std::uint8_t first = at[0];
  if ((first & 3U) == 3) {
    if ((first & 4U) == 0) {
      ++at;
      return true;
    }
    std::size_t size = 2;
    while (size < kMostCyc && (at[size - 1] & 1U) != 0) ++size;
    // The simple decoder knows how long one may be, and what erratum SKD007 makes of one.
    if (size > 8 || (size == 2 && at[1] == 0x02 && at[2] == 0xf3)) return false;
    at += size;
    return true;
  }
  if (first == kMtc) {
    at += 2;
    return true;
  }
  if (first == kTsc) {
    at += 8;
    return true;
  }
  if (first == 2 && at[1] == kTma && at[4] == 0 && (at[6] & 0xfeU) == 0) {
    at += 7;
    return true;
  }
  return false;
}

// One pass. Locals of run() are to stay in registers; what may lie in memory is here.
template <typename Rows, bool kPlaces>
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
        watch_(state.tip_watch),
        deferred_(state.tips_deferred) {}

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
    if constexpr (kPlaces) room_.places[room_.place_count++] = {since, offset, row_end};
  }
  void apply_calls(const Cell& cell) {
    if ((cell.flags & CELL_CALL) != 0) return calls_.call(cell.ip);
    const Way& way = graph_.ways()[cell.way];
    calls_.call(graph_.pushed() + way.push, way.pushes, way.depth);
  }
  [[nodiscard]] Cell* find_bits(std::uint32_t base, std::uint32_t bits);
  [[nodiscard]] Cell* find_target(std::uint32_t base, Packet packet, std::uint64_t ip);
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
  // What the next packet tells may have happened since `since_`; if it is a TNT packet, since `last_`.
  std::uint64_t since_;
  std::uint64_t last_;
  WayId left_ = 0;  // through which packets went off last
  unsigned builds_ = 0;
  std::uint8_t watch_;
  bool deferred_;
};

// The node may have got another base since `via_` was told of it.
template <typename Rows, bool kPlaces>
void Pass<Rows, kPlaces>::connect(NodeId node) noexcept {
  if (via_ != nullptr) via_->next = graph_.at(node).base;
}

// What the hot loop did not find at once. Null: it is for the simple decoder.
template <typename Rows, bool kPlaces>
[[gnu::noinline]] Cell* Pass<Rows, kPlaces>::find_bits(std::uint32_t base, std::uint32_t bits) {
  const NodeId node = graph_.node_of(base);
  connect(node);
  if (node == 0) return nullptr;
  ++builds_;
  Cell* const found = graph_.bits(node, bits);
  reload();
  return found;
}

template <typename Rows, bool kPlaces>
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

template <typename Rows, bool kPlaces>
FastStop Pass<Rows, kPlaces>::run() {
  reload();
  const std::uint8_t* at = base_ + state_.position;
  const std::uint8_t* const stream_end = base_ + state_.end;
  const std::uint8_t* end = stream_end - kWindow;
  if (static_cast<std::uint64_t>(end - at) > kPass && end > at) end = at + kPass;
  std::uint32_t base = graph_.at(state_.node).base;  // the node's
  std::uint64_t last_ip = state_.last_ip;
  FastStop stop = FastStop::FULL;
  const std::size_t place_limit = kPlaces ? room_.place_limit - 2 : 0;
  const auto go = [&](Cell* cell) {
    instructions_ += cell->insns;
    base = cell->next;
    via_ = cell;
  };

  while (at < end) {
    if constexpr (Rows::kBounded) {
      if (rows_.rows >= room_.limit) break;
    }
    if constexpr (kPlaces) {
      if (room_.place_count > place_limit) break;
    }
    const std::uint8_t first = *at;
    const auto offset = static_cast<std::uint64_t>(at - base_);
    if ((first & 1U) == 0 && first > 2) {
      // TNT-8
      std::uint32_t bits = first >> 1U;
      unsigned used = 0;
      const std::uint64_t before = instructions_;
      do {
        Cell* cell = &BitCells::at(bits_, base, bits);
        if (cell->from != base) [[unlikely]] {
          cell = used != 0 || may_build() ? find_bits(base, bits) : nullptr;
          if (cell == nullptr) break;
        }
        rows_.bits(*cell);
        go(cell);
        const std::uint8_t flags = cell->flags;
        if (flags == 0) [[likely]] {
          bits = 1;
          break;
        }
        if ((flags & (CELL_CALL | CELL_CALLS)) != 0) apply_calls(*cell);
        if ((flags & (CELL_RETURN | CELL_STUCK)) == 0) {
          bits = 1;
          break;
        }
        used += cell->used;
        bits = without(bits, cell->used);
        if ((flags & CELL_STUCK) != 0 || calls_.empty()) break;
        const std::uint64_t ip = return_target();
        cell = &TargetCells::first(targets_, target_mask_, ip, base);
        if (cell->ip != ip || cell->from != base) [[unlikely]] {
          cell = find_target(base, Packet::TIP, ip);  // it can be: see DecisionGraph::bits()
        }
        rows_.target(*cell);
        go(cell);
        ++used;
        bits = without(bits, 1);
      } while (bits > 1);
      if (bits > 1) [[unlikely]] {
        if (used != 0) {
          stop = FastStop::REST;
          state_.rest = bits;
          state_.instructions_before = before;
          place(rows_.rows, last_, offset);
        } else if (builds_ < kMostBuilds) {
          stop = FastStop::PACKET;
        }
        break;
      }
      since_ = last_;
      last_ = offset;
      deferred_ = deferred_ && watch_ != kTip;
      watch_ = first < kFullTnt8 ? kPartialTnt : kNoWatch;
      place(rows_.rows, since_, offset);
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
      Cell* cell = &TargetCells::first(targets_, target_mask_, ip, from);
      if (cell->ip != ip || cell->from != from) [[unlikely]] {
        cell = builds_ < kMostBuilds ? find_target(base, static_cast<Packet>(packet), ip) : nullptr;
        if (cell == nullptr) {
          if (builds_ < kMostBuilds) stop = FastStop::PACKET;
          break;
        }
      }
      rows_.target(*cell);
      go(cell);
      if ((cell->flags & (CELL_CALLS | CELL_POPS | CELL_OFF)) != 0) {
        if ((cell->flags & CELL_CALLS) != 0) apply_calls(*cell);
        if ((cell->flags & CELL_POPS) != 0) calls_.return_by_tip();
        if ((cell->flags & CELL_OFF) != 0) {
          calls_.flush();
          left_ = cell->way;
        }
      }
      if (form.size != 1) last_ip = ip;
      if (packet == static_cast<std::uint8_t>(Packet::TIP)) {
        place(rows_.before_target(), since_, offset);
        place(rows_.rows, offset, offset);
        if (watch_ == kPartialTnt) watch_ = kTip;
      } else {
        if (packet != static_cast<std::uint8_t>(Packet::PGE)) place(rows_.rows, since_, offset);
        ++room_.events;
        watch_ = kNoWatch;
      }
      since_ = last_ = offset;
      at += form.size;
      continue;
    }
    if (!timing(at)) {
      stop = FastStop::PACKET;
      break;
    }
    watch_ = kNoWatch;
  }
  if (at >= end && stop == FastStop::FULL && end == stream_end - kWindow) stop = FastStop::PACKET;
  const auto position = static_cast<std::uint64_t>(at - base_);
  if (last_ >= state_.position) state_.last = last_of(base_[last_]);  // or no packet was used
  room_.used_bytes += position - state_.position;
  state_.position = position;
  state_.last_ip = last_ip;
  state_.since = since_;
  state_.tnt_before = last_ != since_ ? last_ : FastState::kNone;
  state_.node = graph_.node_of(base);
  state_.tip_watch = watch_;
  state_.tips_deferred = deferred_;
  if (left_ != 0) {
    const Leave& leave = graph_.leave(graph_.ways()[left_]);
    state_.resume_ip = leave.resume_ip;
    state_.end_ip = leave.end_ip;
  }
  room_.row = rows_.rows;
  room_.instructions += instructions_;
  return stop;
}

template <typename Rows>
FastStop pass(DecisionGraph& graph, const AddressFilter& filter, CallStack& calls, const std::uint8_t* base,
              FastState& state, BulkRoom& room) {
  if (room.places != nullptr) return Pass<Rows, true>(graph, filter, calls, base, state, room).run();
  return Pass<Rows, false>(graph, filter, calls, base, state, room).run();
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
      return pass<BranchRows>(graph, filter_, calls_, base, state, room);
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
