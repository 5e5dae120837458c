// Reads packets into frames of timing points, with one frame in memory.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "base/cpu/isa.h"
#include "packet/decoder.h"
#include "time/point.h"

namespace ptkit::time {

// Counts orders of TNT and CYC packets, from which ClockModel::tnt_time is inferred.
struct TntCensus {
  // CYC, partial TNT, CYC with cycles: the TNT packet was emitted later than the CYC
  std::uint64_t partial_then_cycles = 0;
  // CYC, partial TNT, other packet: both were emitted at once
  std::uint64_t partial_then_packet = 0;
  std::uint64_t full_alone = 0;  // full TNT without a preceding CYC
  std::uint64_t full_with_cyc = 0;
  std::uint64_t partial_alone = 0;
  std::uint64_t partial_with_cyc = 0;
  std::uint64_t long_packets = 0;  // TNT-64

  [[nodiscard]] TntTime judge() const noexcept;
};

// Extends the 56 bits of a TSC packet: the upper byte is that of the last TSC, or one more if the 56 bits
// wrapped.
[[nodiscard]] std::uint64_t extend_tsc(std::uint64_t last, std::uint64_t payload) noexcept;

class FrameReader {
 public:
  // `losses` (by offset): where bytes are missing from the stream.
  FrameReader(base::Bytes stream, std::span<const trace::KnownLoss> losses, const packet::Errata& errata);

  // Before the first frame: begins at the PSB at this offset.
  void begin_at(std::uint64_t psb, const CarriedTime& carried);
  [[nodiscard]] CarriedTime carried() const noexcept {
    return {.tsc = tsc_, .ratio = ratio_, .ratio_before = ratio_before_};
  }
  // Reads the next frame into the memory of the last one. False at the end of the stream.
  [[nodiscard]] bool next(Frame& frame);

  // For files (base/fields.h): the state between frames. True if it is a state of this stream.
  template <typename Fields>
  bool describe(Fields& fields);

  void set_tnt_time(TntTime tnt_time) noexcept { tnt_time_ = tnt_time; }
  void use(base::cpu::Isa isa) noexcept { isa_ = isa; }
  void take_census() noexcept { counting_ = true; }
  [[nodiscard]] const TntCensus& census() const noexcept { return census_; }
  [[nodiscard]] std::uint64_t position() const noexcept { return decoder_.position(); }
  [[nodiscard]] base::Bytes stream() const noexcept { return decoder_.stream(); }
  [[nodiscard]] std::uint64_t first_psb() const noexcept { return first_psb_; }

 private:
  // Packets that still have the time of the last CYC: none, the first one (the CYC's own packet), or the rest
  // of a compound packet event.
  enum class Follow : std::uint8_t { NOTHING, FIRST, REST };
  struct Columns;
  // Without a TSC a frame is cut at the first MTC after this many points, or anywhere after twice as many.
  static constexpr std::size_t kMaxPoints = std::size_t{1} << 16;

  [[nodiscard]] bool read(packet::Packet& packet);
  [[nodiscard]] bool cross_loss(std::uint64_t end);
  // Fast path: adds the points of common packets; stops before any other packet.
  void scan(Frame& frame);
  template <bool kCounting>
  std::uint64_t scan_from(std::uint64_t at, std::uint64_t limit, Frame& frame);
  // As scan_from(), with AVX-512. Stops before a packet that scan_from() has to read, or near `end`.
  std::uint64_t scan_blocks(std::uint64_t at, std::uint64_t end, Frame& frame);
  void note_cycles(Cycles& cycles) noexcept;
  struct Attached;
  template <typename Row>
  [[nodiscard]] Attached attached_in(const Row& row) const noexcept;
  template <typename Row>
  void add_row(const Row& row, std::uint64_t at, Frame& frame);
  [[nodiscard]] bool make_room(Frame& frame, std::size_t size, std::size_t& room, Columns& to);
  void add(const packet::Packet& packet, Frame& frame);
  void cut(Frame& frame);
  void add_cyc(const packet::Packet& packet, Frame& frame);
  void add_mtc(const packet::Packet& packet, Frame& frame);
  void add_other(const packet::Packet& packet, Frame& frame);
  void close_at_tsc(const packet::Packet& packet, Frame& frame);
  void read_group(bool in_psb, Frame& frame);
  void set_ratio(std::uint64_t ratio) noexcept;
  void push_mtc(std::uint64_t at, std::uint64_t payload, bool joined, Frame& frame);
  void count(const packet::Packet& packet) noexcept;
  void count_cyc(std::uint64_t cycles) noexcept;
  void count_tnt(bool full, bool after_cyc) noexcept;
  void count_other() noexcept;
  [[nodiscard]] bool in_cycle_of_cyc() const noexcept;
  [[nodiscard]] bool take_lost() noexcept;

  packet::PacketDecoder decoder_;
  std::span<const trace::KnownLoss> losses_;
  std::size_t next_loss_ = 0;
  TntTime tnt_time_ = TntTime::UNKNOWN;
  TntCensus census_;
  bool counting_ = false;
  base::cpu::Isa isa_ = base::cpu::isa_choice().isa;

  TscMtcPoint opening_;
  bool opening_known_ = false;
  std::uint64_t tsc_ = 0;
  std::uint64_t first_psb_ = 0;
  std::uint64_t psb_ = 0;
  std::uint8_t ratio_ = 0;
  std::uint8_t ratio_before_ = 0;  // another ratio that was in force since the last CYC
  Follow follow_ = Follow::NOTHING;
  bool after_cyc_ = false;          // the preceding packet is a CYC
  bool psb_after_cyc_ = false;      // the PSB+, and so its TSC, follows a CYC
  bool after_partial_tnt_ = false;  // the preceding packets are a CYC and a partial TNT
  bool lost_ = false;
  bool cycles_lost_ = false;
  bool ended_ = false;
};

template <typename Fields>
bool FrameReader::describe(Fields& fields) {
  packet::DecoderState state = decoder_.state();
  fields(state.position);
  fields(state.in_psb);
  fields(state.block_open);
  fields(state.block_items_4);
  fields(next_loss_);
  opening_.describe(fields);
  fields(opening_known_);
  fields(tsc_);
  fields(first_psb_);
  fields(psb_);
  fields(ratio_);
  fields(ratio_before_);
  fields(follow_, Follow::REST);
  fields(after_cyc_);
  fields(psb_after_cyc_);
  fields(lost_);
  fields(cycles_lost_);
  fields(ended_);
  if (state.position > stream().size() || next_loss_ > losses_.size()) return false;
  state.last_ip_known = false;  // frames do not depend on it
  decoder_.set_state(state);
  return true;
}

}  // namespace ptkit::time
