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
constexpr std::uint8_t kTip = 2;
constexpr std::uint8_t kFullTnt8 = 0x80;  // a TNT-8 packet with its six bits is at least this

// IP packets: kinds are the low five bits, the form of the IP the others.
constexpr std::uint8_t kKindBits = 0x1f;
constexpr std::uint8_t kTipKind = 0x0d;
constexpr std::uint8_t kPgeKind = 0x11;
constexpr std::uint8_t kPgdKind = 0x01;

struct IpForm {
  std::uint64_t take = 0;  // bits that come from the packet
  std::uint64_t keep = 0;  // from the last IP
  std::uint8_t size = 0;   // of the packet; 0: reserved, or none
  std::uint8_t shift = 0;  // sign extension
};
constexpr std::uint64_t kBits48 = 0xffffffffffffULL;
constexpr std::array<IpForm, 8> kIpForms = {{
    {},
    {0xffff, ~0xffffULL, 3, 0},
    {0xffffffff, ~0xffffffffULL, 5, 0},
    {kBits48, 0, 7, 16},
    {kBits48, ~kBits48, 7, 0},
    {},
    {~0ULL, 0, 9, 0},
    {},
}};

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

// One pass. Members are the loop's registers, and what its rare parts need.
template <typename Rows, bool kPlaces>
class Pass {
 public:
  Pass(DecisionGraph& graph, const AddressFilter& filter, CallStack& calls, const std::uint8_t* base,
       FastState& state, BulkRoom& room)
      : graph_(graph), filter_(filter), calls_(calls), base_(base), state_(state), room_(room), rows_(room) {}

  FastStop run();

 private:
  using Cell = DecisionGraph::Cell;
  using Hop = DecisionGraph::Hop;

  void reload() noexcept {
    cells_ = graph_.cells();
    nodes_ = graph_.nodes();
    ways_ = graph_.ways();
    rows_.begin(graph_);
  }
  void place(std::size_t row_end, std::uint64_t since, std::uint64_t offset) noexcept {
    if constexpr (kPlaces) room_.places[room_.place_count++] = {since, offset, row_end};
  }
  void apply_calls(const Way& way) {
    if (way.depth != 0) calls_.call(graph_.pushed() + way.push, way.pushes, way.depth);
  }
  [[nodiscard]] WayId exit_of(NodeId node) {
    if (const WayId known = nodes_[node].exit; known != 0) return known;
    const WayId built = graph_.exit(node);
    ++builds_;
    reload();
    return built;
  }
  [[nodiscard]] Hop& hop_to(NodeId node, std::uint64_t ip) {
    Hop& hop = graph_.hop(node, ip);
    nodes_ = graph_.nodes();
    return hop;
  }
  [[nodiscard]] bool take_bits(std::uint32_t& bits, unsigned& used, NodeId& node);
  [[nodiscard]] bool take_return(NodeId& node);
  [[nodiscard]] bool timing(const std::uint8_t*& at) const noexcept;

  DecisionGraph& graph_;
  const AddressFilter& filter_;
  CallStack& calls_;
  const std::uint8_t* base_;
  FastState& state_;
  BulkRoom& room_;
  Rows rows_;
  const Cell* cells_ = nullptr;
  const DecisionGraph::Node* nodes_ = nullptr;
  Way* ways_ = nullptr;
  unsigned builds_ = 0;
  std::uint64_t instructions_ = 0;
};

// The node's way leads to a return whose target lies on the stack.
template <typename Rows, bool kPlaces>
bool Pass<Rows, kPlaces>::take_return(NodeId& node) {
  const WayId id = exit_of(node);
  if (id == 0) return false;
  Way& exit = ways_[id];
  if (exit.end != WayEnd::RETURN || (exit.pushes == 0 && calls_.empty())) return false;
  apply_calls(exit);
  BlockCache& cache = graph_.cache();
  const std::uint64_t target =
      calls_.return_by_tnt([&cache](std::uint64_t ip) { return cache.at(ip).end != RunEnd::FAIL; });
  Hop& hop = hop_to(node, target);
  rows_.exit(ways_[id], hop);
  instructions_ += ways_[id].insns;
  node = hop.next;
  return true;
}

// Uses bits one way after another. False: what is left is for the simple decoder.
template <typename Rows, bool kPlaces>
bool Pass<Rows, kPlaces>::take_bits(std::uint32_t& bits, unsigned& used, NodeId& node) {
  while (bits > 1) {
    Cell cell = cells_[std::size_t{nodes_[node].row} * DecisionGraph::kRowCells + bits];
    if (cell.way == 0) {
      cell = graph_.bits(node, bits);
      ++builds_;
      reload();
      if (cell.way == 0) return false;
    }
    Way& way = ways_[cell.way & ~DecisionGraph::kPartial];
    rows_.way(way);
    instructions_ += way.insns;
    apply_calls(way);
    node = way.next;
    const WayEnd end = way.end;
    used += way.bits;
    unsigned left = static_cast<unsigned>(std::bit_width(bits)) - 1 - way.bits;
    bits = (bits & ((1U << left) - 1)) | 1U << left;
    if (end == WayEnd::STUCK) return false;
    if (end != WayEnd::RETURN) continue;
    if (!take_return(node)) return false;
    ++used;
    --left;
    bits = (bits & ((1U << left) - 1)) | 1U << left;
  }
  return true;
}

// Skips a packet that tells time, or nothing at all. False: it is another one.
template <typename Rows, bool kPlaces>
bool Pass<Rows, kPlaces>::timing(const std::uint8_t*& at) const noexcept {
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

template <typename Rows, bool kPlaces>
FastStop Pass<Rows, kPlaces>::run() {
  reload();
  const std::uint8_t* at = base_ + state_.position;
  const std::uint8_t* const stream_end = base_ + state_.end;
  const std::uint8_t* end = stream_end - kWindow;
  if (static_cast<std::uint64_t>(end - at) > kPass && end > at) end = at + kPass;
  NodeId node = state_.node;
  std::size_t row = std::size_t{nodes_[node].row} * DecisionGraph::kRowCells;
  std::size_t last_cell = 0;  // through which `node` was reached
  std::uint64_t last_ip = state_.last_ip;
  std::uint64_t since = state_.since;
  std::uint64_t tnt_before = state_.tnt_before;
  std::uint8_t watch = state_.tip_watch;
  bool deferred = state_.tips_deferred;
  std::uint64_t packets = 0;
  FastStop stop = FastStop::FULL;
  const std::size_t place_limit = kPlaces ? room_.place_limit - 2 : 0;

  while (at < end) {
    if (rows_.rows >= room_.limit) break;
    if constexpr (kPlaces) {
      if (room_.place_count > place_limit) break;
    }
    const std::uint8_t first = *at;
    if ((first & 1U) == 0 && first > 2) {
      // TNT-8
      if (node == 0) {
        stop = FastStop::PACKET;
        break;
      }
      ++packets;
      const std::uint64_t offset = static_cast<std::uint64_t>(at - base_);
      const std::uint64_t since_here = tnt_before != FastState::kNone ? tnt_before : since;
      const Cell cell = cells_[row + (first >> 1U)];
      if (cell.way != 0 && (cell.way & DecisionGraph::kPartial) == 0) [[likely]] {
        Way& way = ways_[cell.way];
        rows_.way(way);
        instructions_ += way.insns;
        apply_calls(way);
        last_cell = row + (first >> 1U);
        row = std::size_t{cell.row} * DecisionGraph::kRowCells;
        node = way.next;
      } else {
        if (builds_ >= kMostBuilds || graph_.cache().too_big()) {
          if (builds_ < kMostBuilds) stop = FastStop::PACKET;
          break;
        }
        std::uint32_t bits = first >> 1U;
        unsigned used = 0;
        const NodeId from = node;
        const std::uint64_t before = instructions_;
        if (!take_bits(bits, used, node)) {
          state_.rest = bits;
          state_.instructions_before = before;
          stop = used == 0 ? FastStop::PACKET : FastStop::REST;
          if (stop == FastStop::REST) place(rows_.rows, since_here, offset);
          break;
        }
        if (last_cell != 0) graph_.connect(last_cell, from);
        last_cell = 0;
        row = std::size_t{nodes_[node].row} * DecisionGraph::kRowCells;
      }
      since = since_here;
      tnt_before = offset;
      if (watch == kTip) deferred = false;
      watch = first < kFullTnt8 ? kPartialTnt : kNoWatch;
      place(rows_.rows, since, offset);
      state_.last = FastLast::BRANCH;
      ++at;
      continue;
    }
    if (first == 0) {
      const std::uint64_t word = load<std::uint64_t>(at);
      at += word == 0 ? 8 : std::countr_zero(word) / 8;
      continue;
    }
    const std::uint8_t kind = first & kKindBits;
    const IpForm& form = kIpForms[first >> 5U];
    if (kind == kTipKind) {
      const WayId id = node == 0 || form.size == 0 ? 0 : exit_of(node);
      if (id == 0 || builds_ >= kMostBuilds) {
        stop = id == 0 ? FastStop::PACKET : FastStop::FULL;
        break;
      }
      ++packets;
      const std::uint64_t offset = static_cast<std::uint64_t>(at - base_);
      last_ip = ip_of(form, at, last_ip);
      Hop& hop = hop_to(node, last_ip);
      Way& exit = ways_[id];
      rows_.exit(exit, hop);
      instructions_ += exit.insns;
      apply_calls(exit);
      if (exit.end == WayEnd::RETURN) calls_.return_by_tip();
      place(rows_.before_exit(), since, offset);
      since = offset;
      place(rows_.rows, since, offset);
      tnt_before = FastState::kNone;
      if (watch == kPartialTnt) watch = kTip;
      node = hop.next;
      row = std::size_t{nodes_[node].row} * DecisionGraph::kRowCells;
      last_cell = 0;
      state_.last = FastLast::BRANCH;
      at += form.size;
      continue;
    }
    if (kind == kPgeKind) {
      if (node != 0 || form.size == 0) {
        stop = FastStop::PACKET;
        break;
      }
      ++packets;
      ++room_.events;
      last_ip = ip_of(form, at, last_ip);
      node = hop_to(0, last_ip).next;
      row = std::size_t{nodes_[node].row} * DecisionGraph::kRowCells;
      last_cell = 0;
      since = static_cast<std::uint64_t>(at - base_);
      tnt_before = FastState::kNone;
      watch = kNoWatch;
      state_.last = FastLast::ENABLED;
      at += form.size;
      continue;
    }
    if (kind == kPgdKind) {
      const bool known = (first >> 5U) != 0;
      if (node == 0 || (known && form.size == 0)) {
        stop = FastStop::PACKET;
        break;
      }
      const std::uint64_t ip = known ? ip_of(form, at, last_ip) : 0;
      const std::size_t ways = graph_.way_count();
      const DecisionGraph::Leave* const leave = graph_.leave(node, known ? &ip : nullptr, filter_);
      if (graph_.way_count() != ways) {
        ++builds_;
        reload();
      }
      if (leave == nullptr) {
        stop = FastStop::PACKET;
        break;
      }
      ++packets;
      ++room_.events;
      if (known) last_ip = ip;
      Way& way = ways_[leave->way];
      rows_.way(way);
      instructions_ += way.insns;
      apply_calls(way);
      calls_.flush();
      const std::uint64_t offset = static_cast<std::uint64_t>(at - base_);
      place(rows_.rows, since, offset);
      state_.resume_ip = leave->resume_ip;
      state_.end_ip = leave->end_ip;
      node = 0;
      row = 0;
      last_cell = 0;
      since = offset;
      tnt_before = FastState::kNone;
      watch = kNoWatch;
      state_.last = FastLast::DISABLED;
      at += known ? form.size : 1;
      continue;
    }
    if (!timing(at)) {
      stop = FastStop::PACKET;
      break;
    }
    watch = kNoWatch;
  }
  if (at >= end && stop == FastStop::FULL && end == stream_end - kWindow) stop = FastStop::PACKET;
  state_.position = static_cast<std::uint64_t>(at - base_);
  state_.last_ip = last_ip;
  state_.since = since;
  state_.tnt_before = tnt_before;
  state_.node = node;
  state_.tip_watch = watch;
  state_.tips_deferred = deferred;
  room_.row = rows_.rows;
  room_.instructions += instructions_;
  room_.packets += packets;
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
