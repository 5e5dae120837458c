// One pass of the fast path's loop over a stream: its state, and what it does with each packet. fast_loop.cpp
// and fast_events.h have the loop and the functions that are too long for a class.
#pragma once

#include <algorithm>
#include <array>
#include <bit>

#include "flow/events/plain_packets.h"
#include "flow/fast/fast_loop.h"
#include "flow/fast/fast_rows.h"
#include "flow/walk/walker.h"

namespace ptkit::flow {
namespace {  // of fast_loop.cpp alone, so that the compiler inlines what is called once

constexpr std::size_t kWindow = 16;         // bytes that may be read after a packet's first byte
constexpr std::uint64_t kPass = 1U << 18U;  // bytes of stream after which run() returns
constexpr unsigned kMostBuilds = 2048;      // paths that one pass builds at most, because building takes time
constexpr unsigned kMostLone = 1024;        // groups that one pass looks up in vain, before it stops to

// PathCache::Packet by a packet's first byte.
constexpr std::uint8_t kNoTarget = 0xff;
constexpr std::array<std::uint8_t, 256> kTargetPackets = [] {
  using Packet = PathCache::Packet;
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

// The byte after an IP packet. Usual sizes are predicted, so that the next packet does not wait for this one.
const std::uint8_t* after_ip_packet(const std::uint8_t* at) noexcept {
  const unsigned form = *at >> 5U;
  if (form == 1) [[likely]]
    return at + kIpForms[1].size;
  if (form == 2) [[likely]]
    return at + kIpForms[2].size;
  return at + kIpForms[form].size;
}

// The bits after the first `count` bits.
template <typename Bits>
Bits without(Bits bits, unsigned count) noexcept {
  const Bits first = std::bit_floor(bits) >> count;
  return (bits & (first - 1)) | first;
}

// The first bits, as many as a transition can have.
std::uint32_t first_of(std::uint32_t bits) noexcept { return bits; }
std::uint32_t first_of(std::uint64_t bits) noexcept {
  constexpr unsigned kMostWidth = 7;  // with the leading 1
  const auto width = static_cast<unsigned>(std::bit_width(bits));
  return static_cast<std::uint32_t>(bits >> (std::max(width, kMostWidth) - kMostWidth));
}

// Kind of the last packet at a decision; `at` is the PSBEND of a PSB+.
FastLast last_of(const std::uint8_t* at, bool on) noexcept {
  if (is_long_tnt(at)) return FastLast::BRANCH;
  if (*at == kEscape) return on ? FastLast::ENABLED : FastLast::DISABLED;
  switch (kTargetPackets[*at]) {
    case static_cast<std::uint8_t>(PathCache::Packet::PGE):
      return FastLast::ENABLED;
    case static_cast<std::uint8_t>(PathCache::Packet::PGD):
    case static_cast<std::uint8_t>(PathCache::Packet::PGD_NO_IP):
      return FastLast::DISABLED;
    default:
      return FastLast::BRANCH;
  }
}

// Spans of rows that the sink needs: see BulkRoom.
enum class Spans : std::uint8_t { NONE, PACKETS, FIRST_BITS };

// Where the loop is. Functions that are not inlined change a copy: a local that has its address taken would
// stay in memory, and every packet waits for the node before it.
struct LoopPosition {
  const std::uint8_t* at;
  std::uint32_t base;
  std::uint64_t last_ip;
};

// One pass. Members may be in memory; locals of run() stay in registers.
template <typename Rows, Spans kSpans>
class Pass {
 public:
  Pass(PathCache& paths, const AddressFilter& filter, CallStack& calls, const std::uint8_t* base,
       FastState& state, BulkRoom& room)
      : paths_(paths),
        filter_(filter),
        calls_(calls),
        base_(base),
        state_(state),
        room_(room),
        rows_(room),
        since_(state.events.since),
        last_(state.events.tnt_before.value_or(state.events.since)),
        rows_with_spans_(room.row),
        watch_(state.events.tip_watch),
        deferred_(state.binder.tips_deferred),
        tip_order_(state.events.tip_order) {
    grouping_ = kCounts && paths.may_group();
  }

  FastStop run();

 private:
  using Packet = PathCache::Packet;

  // Rows that only count, without spans, need nothing of a TNT packet between two others.
  static constexpr bool kCounts = Rows::kCounts && kSpans == Spans::NONE;

  // Reloads the pointers to the tables, which building a path may move.
  void reload() noexcept {
    rows_.begin(paths_);
    bits_ = paths_.tnt_transitions().data();
    targets_ = paths_.tip_transitions().data();
    target_mask_ = paths_.target_mask();
  }
  void add_span_run(std::size_t row_end, std::uint64_t since, std::uint64_t offset) noexcept {
    if constexpr (kSpans == Spans::NONE) return;
    if constexpr (Rows::kMayBeNone) {
      if (row_end == rows_with_spans_) return;
      rows_with_spans_ = row_end;
    }
    room_.spans[room_.span_count++] = {since, offset, row_end};
  }
  // Notes the rows before the packet's first bit. The path of its first bits was emitted from row `begin` on.
  void note_head(std::size_t begin, const Transition& transition) noexcept {
    if constexpr (kSpans == Spans::NONE) return;
    if (kSpans == Spans::FIRST_BITS || head_since() != last_) head_ = {begin, begin + rows_.head(transition)};
  }
  // StreamSpan::since of rows before the first bit of the next TNT packet: see EventDecoder::begin().
  [[nodiscard]] std::uint64_t head_since() const noexcept {
    return may_be_late(base_ + last_) ? since_ : last_;
  }
  // Sets the spans of the rows of the TNT packet after `last_`.
  void add_bits_span_runs(std::uint64_t offset) noexcept {
    if constexpr (kSpans == Spans::NONE) return;
    const std::uint64_t since = head_since();
    if (kSpans == Spans::FIRST_BITS || since != last_) {
      if (head_.end != head_.begin) add_span_run(head_.end, since, offset | time::TimeQuery::kBeforeFirstBit);
    }
    add_span_run(rows_.rows, last_, offset);
  }
  void follow(Transition& transition, std::uint32_t& base) noexcept {
    instructions_ += transition.insns;
    base = transition.next;
    via_ = &transition.next;
  }
  // Not inlined, so that the hot loop keeps its registers.
  [[gnu::noinline]] void apply_calls(const Transition& transition) {
    if ((transition.flags & TRANSITION_CALL) != 0) return calls_.call(transition.ip);
    const Path& path = paths_.paths()[transition.path];
    calls_.call(paths_.pushed() + path.push, path.pushes, path.depth);
  }
  // Packets are enabled at `ip` by the packet at `offset`.
  void mark_enabled(std::uint64_t ip, std::uint64_t offset) noexcept {
    rows_.mark_enabled(ip);
    add_span_run(rows_.rows, offset, offset);
  }
  // Packets are disabled by the packet at `offset`.
  void mark_disabled(std::uint64_t offset) noexcept {
    rows_.mark_disabled();
    add_span_run(rows_.rows, offset, offset);
  }
  // After a TIP.PGE or TIP.PGD: see EventBinder::bind_enabled() and bind_disabled().
  void add_event(const Transition& transition, bool ip_known, std::uint64_t ip, std::uint64_t offset) {
    BulkEvent event{.ip = ip_known ? ip : 0, .offset = offset, .instructions = instructions_};
    if (ip_known) event.flags = EV_IP_KNOWN;
    if ((transition.flags & TRANSITION_OFF) != 0) {
      event.kind = EventKind::DISABLED;
    } else {
      const std::uint64_t resume =
          left_ == 0 ? state_.binder.resume_ip : paths_.leave(paths_.paths()[left_]).resume_ip;
      if (resume != 0 && resume == ip) event.flags |= EV_RESUMED;
    }
    rows_.event(event);
  }
  void finish(const std::uint8_t* at, std::uint32_t base, std::uint64_t last_ip);
  template <typename Bits>
  [[nodiscard]] FastStop take_bits(Bits bits, std::uint32_t& base, std::uint64_t offset);
  [[nodiscard]] FastStop take_long(const std::uint8_t* at, std::uint32_t& base);
  [[nodiscard]] Transition* find_bits(std::uint32_t base, std::uint32_t bits);
  [[nodiscard]] Transition* find_target(std::uint32_t base, Packet packet, std::uint64_t ip);
  [[nodiscard]] bool take_events(LoopPosition& position);
  [[nodiscard]] bool find_psb_header(const std::uint8_t* at, PsbHeader& header) noexcept;
  [[nodiscard]] bool take_psb(LoopPosition& position);
  [[nodiscard]] bool take_mode(LoopPosition& position);
  [[nodiscard]] bool take_interrupt(LoopPosition& position);
  [[nodiscard]] std::uint64_t return_target() {
    BlockCache& cache = paths_.cache();
    return calls_.return_by_tnt([&cache](std::uint64_t ip) { return cache.at(ip).end != Terminator::FAIL; });
  }
  [[nodiscard]] bool may_build() const noexcept { return builds_ < kMostBuilds && !paths_.cache().too_big(); }
  void connect(NodeId node) noexcept;
  [[gnu::always_inline]] inline void take_run(const std::uint8_t*& at, const std::uint8_t* end,
                                              std::uint32_t& base, FastStop& stop);
  [[nodiscard]] PacketGroup* find_group(std::uint32_t base, std::uint32_t tnt, std::uint64_t ip);
  void take_groups(LoopPosition& position, const std::uint8_t* end);
  void end_run(const std::uint8_t* begin, const std::uint8_t* at) noexcept;

  PathCache& paths_;
  const AddressFilter& filter_;
  CallStack& calls_;
  const std::uint8_t* base_;
  FastState& state_;
  BulkRoom& room_;
  Rows rows_;
  Transition* bits_ = nullptr;
  Transition* targets_ = nullptr;
  std::uint64_t target_mask_ = 0;
  std::uint32_t* via_ = nullptr;  // `next` of the transition or group that led to the current node
  bool grouping_ = false;         // groups are looked up
  unsigned lone_ = 0;             // groups that were looked up in vain
  std::uint64_t instructions_ = 0;
  // Rows of the next packet happened after the packet at `since_`; rows of TNT bits, after the packet at
  // `last_`.
  std::uint64_t since_;
  std::uint64_t last_;
  struct {
    std::size_t begin = 0;
    std::size_t end = 0;
  } head_;                       // rows of the TNT packet before its first bit
  std::size_t rows_with_spans_;  // rows with a span, if packets may have no rows
  PathId left_ = 0;              // path of the last TIP.PGD
  unsigned builds_ = 0;
  const std::uint8_t* psb_ = nullptr;  // the last PSB+ without an IP that was read
  std::size_t psb_size_ = 0;
  PsbHeader psb_header_;
  TipWatch watch_;
  bool deferred_;
  TipOrder tip_order_;
};

}  // namespace
}  // namespace ptkit::flow
