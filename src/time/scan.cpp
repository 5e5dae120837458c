// Fast path of FrameReader. Most packets carry no time, and most of the others are CYC and MTC.
#include <algorithm>
#include <array>
#include <bit>

#include "base/cpu/target.h"
#include "packet/opcodes.h"
#include "time/reader.h"

namespace ptkit::time {
namespace {

using base::load_le;
using packet::PacketKind;

// Kind of a packet by its first byte, outside of BBP blocks.
enum class Shape : std::uint8_t { PAD, TNT, CYC, MTC, IP, FUP, OTHER };

struct FirstByte {
  Shape shape = Shape::OTHER;
  std::uint8_t size = 0;  // size of the packet; 0: varies
};

constexpr FirstByte first_byte(unsigned byte) {
  const auto entry = packet::opcode_entry(packet::OpcodeTable::FIRST, static_cast<std::uint8_t>(byte));
  if (entry >= packet::kEscape) return {};
  constexpr std::array<std::uint8_t, 8> kIpSizes = {1, 3, 5, 7, 7, 0, 9, 0};  // 0: reserved
  const std::uint8_t ip_size = kIpSizes[byte >> 5];
  switch (static_cast<PacketKind>(entry)) {
    case PacketKind::PAD:
      return {Shape::PAD, 0};
    case PacketKind::TNT_8:
      return byte < 4 ? FirstByte{} : FirstByte{Shape::TNT, 0};
    case PacketKind::CYC:
      return {Shape::CYC, 0};
    case PacketKind::MTC:
      return {Shape::MTC, 0};
    case PacketKind::TIP:
    case PacketKind::TIP_PGE:
    case PacketKind::TIP_PGD:
      return ip_size == 0 ? FirstByte{} : FirstByte{Shape::IP, ip_size};
    case PacketKind::FUP:
      return ip_size == 0 ? FirstByte{} : FirstByte{Shape::FUP, ip_size};
    default:
      return {};
  }
}

constexpr std::array<FirstByte, 256> kFirstBytes = [] {
  std::array<FirstByte, 256> table{};
  for (unsigned byte = 0; byte < table.size(); ++byte) table[byte] = first_byte(byte);
  return table;
}();

// Upper limit of the size of a scanned packet, and of the bytes that are read at once.
constexpr std::uint64_t kLongest = 16;

// Returns the offset after the TNT and PAD packets from `at` on, or an offset after `limit`.
std::uint64_t skip_tnt(const std::uint8_t* bytes, std::uint64_t at, std::uint64_t limit) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  while (at <= limit) {
    const std::uint64_t word = load_le<8>(bytes + at);
    const std::uint64_t differs = word ^ (kOnes * 2);
    // All other packets have an odd first byte or 02. A borrow may mark one byte too many, but only after a
    // marked byte.
    const std::uint64_t others = (word << 7 | ((differs - kOnes) & ~differs)) & (kOnes << 7);
    if (others != 0) return at + static_cast<unsigned>(std::countr_zero(others)) / 8;
    at += 8;
  }
  return at;
}

// A CYC of up to four bytes. Longer ones have size 0.
struct ShortCyc {
  unsigned size;
  std::uint32_t cycles;
};

inline ShortCyc short_cyc(std::uint32_t word) noexcept {
  const std::uint32_t two = (word >> 3 & 0x1f) | (word >> 9 & 0x7f) << 5;
  if ((word & 0x104) == 4) return {2, two};
  if ((word & 4) == 0) return {1, word >> 3 & 0x1f};
  const std::uint32_t three = two | (word >> 17 & 0x7f) << 12;
  if ((word & 0x10000) == 0) return {3, three};
  if ((word & 0x1000000) != 0) return {0, 0};
  return {4, three | (word >> 25) << 19};
}

}  // namespace

// Pointers to the columns of a frame's cycles, valid until the columns grow.
struct FrameReader::Columns {
  explicit Columns(Cycles& cycles) noexcept
      : extent(cycles.extent.data()),
        weight(cycles.weight.data()),
        ratio(cycles.ratio.data()),
        flags(cycles.flags.data()) {}
  Extent* extent;
  double* weight;
  std::uint8_t* ratio;
  std::uint8_t* flags;

  void put(std::size_t at, std::uint64_t offset, double cycles, std::uint8_t its_ratio) const noexcept {
    extent[at] = {offset, offset};
    weight[at] = cycles;
    ratio[at] = its_ratio;
    flags[at] = 0;
  }
};

void FrameReader::scan(Frame& frame) {
  const packet::DecoderState& state = decoder_.state();
  if (ended_ || lost_ || cycles_lost_ || state.in_psb || state.block_open) return;
  // After a cut, packets may have the time of the point that opens the frame: add() handles these.
  if (follow_ != Follow::NOTHING && !frame.ends_with_cycles()) return;
  std::uint64_t limit = decoder_.stream().size();
  if (next_loss_ < losses_.size()) limit = std::min(limit, losses_[next_loss_].offset);
  if (limit < state.position + kLongest) return;
  packet::DecoderState next = state;  // frames do not depend on the last IP
#if PT_SIMD_X86
  if (isa_ == base::cpu::Isa::AVX512 && !counting_ && ratio_before_ == 0) {
    next.position = scan_blocks(next.position, limit, frame);
    if (next.position + kLongest > limit) return decoder_.set_state(next);
  }
#endif
  limit -= kLongest;
  next.position = counting_ ? scan_from<true>(next.position, limit, frame)
                            : scan_from<false>(next.position, limit, frame);
  decoder_.set_state(next);
}

// State machine of `follow`: the packets that have the time of the last CYC.
//
//                              full TNT, IP, MTC
//        CYC           +-------------------------------> NOTHING
//   any -----> FIRST --+                                    ^
//                      |                                    | full TNT, IP, MTC
//                      +--- FUP, partial TNT (*) ---> REST -+
//                                                     ^  |
//                                                     +--+ FUP, partial TNT (*)
//
//   (*) A partial TNT leads to REST only if tnt_time_ is PACKET, else to NOTHING.
//
// CYC and MTC add a point. In FIRST and REST, TNT, IP and FUP packets extend the point of the CYC. In NOTHING
// they change nothing, and neither does PAD in any state. The loop ends at `limit`, at a packet of another
// shape, at a long CYC, and when the frame is full.
template <bool kCounting>
std::uint64_t FrameReader::scan_from(std::uint64_t at, std::uint64_t limit, Frame& frame) {
  const std::uint8_t* const bytes = decoder_.stream().data();
  const std::uint8_t ratio = ratio_;
  const bool skd007 = decoder_.errata().skd007;
  const bool packets_time = tnt_time_ == TntTime::PACKET;
  const auto tnt_flag = packets_time ? std::uint8_t{0} : std::uint8_t{Cycles::BEFORE_TNT};
  Cycles& cycles = frame.cycles;
  const std::size_t size_before = cycles.size;
  std::size_t size = size_before;
  std::size_t room = size;
  Columns to(cycles);
  Follow follow = follow_;
  bool after_cyc = after_cyc_;
  for (bool more = true; more && at <= limit;) {
    const FirstByte first = kFirstBytes[bytes[at]];
    switch (first.shape) {
      case Shape::CYC: {
        const std::uint64_t begin = at;
        const auto word = static_cast<std::uint32_t>(load_le<4>(bytes + at));
        const ShortCyc cyc = short_cyc(word);
        more = cyc.size != 0 && !(skd007 && cyc.size == 2 && (word & 0xff00) == 0x0200) &&
               (size < room || make_room(frame, size, room, to));
        if (!more) break;
        // The branches predict the size, so the next packet does not wait for this load.
        at = cyc.size == 2 ? at + 2 : cyc.size == 1 ? at + 1 : at + cyc.size;
        if constexpr (kCounting) count_cyc(cyc.cycles);
        to.put(size++, begin, cyc.cycles, ratio);
        follow = Follow::FIRST;
        after_cyc = true;
        break;
      }
      case Shape::TNT:
        if constexpr (kCounting) count_tnt(bytes[at] >= 0x80, after_cyc);
        if (follow != Follow::NOTHING) {
          to.extent[size - 1].last = at;
          to.flags[size - 1] |= tnt_flag;
          follow = packets_time && bytes[at] < 0x80 ? Follow::REST : Follow::NOTHING;
        }
        after_cyc = false;
        ++at;
        if constexpr (!kCounting) {
          if (follow == Follow::NOTHING && kFirstBytes[bytes[at]].shape == Shape::TNT) {
            at = skip_tnt(bytes, at, limit);
          }
        }
        break;
      case Shape::IP:
      case Shape::FUP:
        if constexpr (kCounting) count_other();
        if (follow != Follow::NOTHING) {
          to.extent[size - 1].last = at;
          follow = first.shape == Shape::FUP ? Follow::REST : Follow::NOTHING;
        }
        after_cyc = false;
        at += first.size;
        break;
      case Shape::MTC:
        more = frame.tsc_mtc_points.size() + size + 1 < kMaxPoints;
        if (!more) break;
        if constexpr (kCounting) count_other();
        cycles.size = size;
        push_mtc(at, bytes[at + 1], after_cyc || (packets_time && follow == Follow::REST), frame);
        follow = Follow::NOTHING;
        after_cyc = false;
        at += 2;
        break;
      case Shape::PAD:
        ++at;
        while (at <= limit && load_le<8>(bytes + at) == 0) at += 8;
        break;
      case Shape::OTHER:
        more = false;
        break;
    }
  }
  cycles.size = size;
  if (size != size_before) note_cycles(cycles);
  follow_ = follow;
  after_cyc_ = after_cyc;
  return at;
}

// Updates the flags after CYC packets were added, all with the current ratio.
void FrameReader::note_cycles(Cycles& cycles) noexcept {
  psb_after_cyc_ = false;
  cycles.ratios_differ = cycles.ratios_differ || cycles.ratio[0] != ratio_;
}

// False: the frame is nearly full, or the next CYC spans more than one ratio.
bool FrameReader::make_room(Frame& frame, std::size_t size, std::size_t& room, Columns& to) {
  constexpr std::size_t kMore = 256;
  if (ratio_before_ != 0 || frame.tsc_mtc_points.size() + size + kMore >= 2 * kMaxPoints) return false;
  frame.cycles.size = size;
  frame.cycles.reserve(kMore);
  room = size + kMore;
  to = Columns(frame.cycles);
  return true;
}

}  // namespace ptkit::time
