// Packets in bulk: counts, and columns filled row by row. Equal to what PacketDecoder gives, faster by what
// the processor has (simd/isa.h); docs/packets.md tells how.
#pragma once

#include <array>

#include "packet/decoder.h"
#include "simd/isa.h"

namespace ptkit::packet {

struct PacketCounts {
  std::array<std::uint64_t, kPacketKinds> packets{};  // by kind; a PAD run counts as its length
  std::uint64_t tnt_bits = 0;                         // of TNT.8 and TNT.64
  std::uint64_t errors = 0;                           // places where decoding failed
  std::uint64_t lost_bytes = 0;  // between such a place (or the beginning) and the next PSB

  [[nodiscard]] bool operator==(const PacketCounts&) const noexcept = default;
};

// Counts the packets of a stream, some bytes at a time.
class PacketCounter {
 public:
  // `sync`: from the first PSB on, else from the first byte. After an error, on from the next PSB.
  PacketCounter(base::Bytes stream, bool sync, const Errata& errata = {},
                simd::Isa isa = simd::isa_choice().isa) noexcept;

  // Counts about this many bytes more; false at the end of the stream.
  [[nodiscard]] bool run(std::uint64_t bytes = UINT64_MAX) noexcept;
  [[nodiscard]] const PacketCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] std::uint64_t position() const noexcept { return state_.position; }
  // PacketDecoder's state at the position. The last IP is made from the packets behind the last one that does
  // not need it, mostly a few kilobytes back.
  [[nodiscard]] DecoderState state() const noexcept;

 private:
  void resync(std::uint64_t from) noexcept;

  base::Bytes stream_;
  Errata errata_;
  simd::Isa isa_;
  PacketCounts counts_;
  DecoderState state_;       // without the last IP
  DecoderState checkpoint_;  // where state() begins
};

}  // namespace ptkit::packet
