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

// Where fields of packets go, one cell per row; null: not wanted.
struct PacketColumns {
  std::uint64_t* offset = nullptr;
  std::uint32_t* size = nullptr;
  std::uint8_t* kind = nullptr;
  std::uint8_t* flags = nullptr;
  std::uint64_t* ip = nullptr;
  std::uint64_t* payload = nullptr;
  std::uint64_t* payload2 = nullptr;

  // The same columns, from a later row on.
  [[nodiscard]] PacketColumns from(std::size_t row) const noexcept {
    const auto behind = [row](auto* cells) { return cells == nullptr ? nullptr : cells + row; };
    return {behind(offset), behind(size),    behind(kind),    behind(flags),
            behind(ip),     behind(payload), behind(payload2)};
  }
  void put(std::size_t row, const Packet& packet) const noexcept {
    const auto put_cell = [row](auto* cells, auto value) {
      if (cells != nullptr) cells[row] = value;
    };
    put_cell(offset, packet.offset);
    put_cell(size, packet.size);
    put_cell(kind, static_cast<std::uint8_t>(packet.kind));
    put_cell(flags, packet.flags);
    put_cell(ip, packet.ip);
    put_cell(payload, packet.payload);
    put_cell(payload2, packet.payload2);
  }
};

struct FilledPackets {
  std::size_t rows = 0;
  // OK: as many rows as there was room for, or the limit was reached; END_OF_STREAM; or what PacketDecoder
  // says to the packet at the state's position, with that packet in `failed`.
  base::Status status = base::Status::OK;
  Packet failed;
};

// Up to this many cells behind the last row are overwritten.
inline constexpr std::size_t kPacketRowSlack = 64;

// The packets from `state` on as rows, each as PacketDecoder gives it. Columns have room for `room` rows and
// the slack. Stops soon behind `limit`.
[[nodiscard]] FilledPackets fill_packets(base::Bytes stream, DecoderState& state, const Errata& errata,
                                         const PacketColumns& columns, std::size_t room,
                                         std::uint64_t limit = UINT64_MAX,
                                         simd::Isa isa = simd::isa_choice().isa) noexcept;

}  // namespace ptkit::packet
