// Packets in bulk: counts packets, or fills columns row by row. The results equal those of PacketDecoder; the
// kernel depends on the instruction set (base/cpu/isa.h). docs/packets.md describes the algorithms.
#pragma once

#include <array>

#include "base/cpu/isa.h"
#include "packet/decoder.h"

namespace ptkit::packet {

struct PacketCounts {
  std::array<std::uint64_t, kPacketKinds> packets{};  // by kind; a PAD run counts as its length
  std::uint64_t tnt_bits = 0;                         // of TNT.8 and TNT.64
  std::uint64_t errors = 0;                           // number of undecodable packets
  std::uint64_t lost_bytes = 0;  // bytes from an undecodable packet (or the start) to the next PSB

  [[nodiscard]] bool operator==(const PacketCounts&) const noexcept = default;
};

// Counts the packets of a stream in steps.
class PacketCounter {
 public:
  // `sync`: starts at the first PSB, else at the first byte. After an error, continues at the next PSB.
  PacketCounter(base::Bytes stream, bool sync, const Errata& errata = {},
                base::cpu::Isa isa = base::cpu::isa_choice().isa) noexcept;

  // Counts about `bytes` more bytes; false at the end of the stream.
  [[nodiscard]] bool run(std::uint64_t bytes = UINT64_MAX) noexcept;
  [[nodiscard]] const PacketCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] std::uint64_t position() const noexcept { return state_.position; }
  // PacketDecoder's state at the position. The last IP and in_psb are rebuilt from the packets after
  // checkpoint_, usually some kilobytes.
  [[nodiscard]] DecoderState state() const noexcept;

 private:
  void resync(std::uint64_t from) noexcept;

  base::Bytes stream_;
  Errata errata_;
  base::cpu::Isa isa_;
  PacketCounts counts_;
  DecoderState state_;       // without the last IP and in_psb
  DecoderState checkpoint_;  // where state() starts
};

// Columns of packet fields; null if not selected.
struct PacketColumns {
  std::uint64_t* offset = nullptr;
  std::uint32_t* size = nullptr;
  std::uint8_t* kind = nullptr;
  std::uint8_t* flags = nullptr;
  std::uint64_t* ip = nullptr;
  std::uint64_t* payload = nullptr;
  std::uint64_t* payload2 = nullptr;

  // These columns from a later row on.
  [[nodiscard]] PacketColumns from(std::size_t row) const noexcept {
    const auto after = [row](auto* cells) { return cells == nullptr ? nullptr : cells + row; };
    return {after(offset), after(size),    after(kind),    after(flags),
            after(ip),     after(payload), after(payload2)};
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
  // OK: the columns are full, or the limit is reached. END_OF_STREAM. Else the status of PacketDecoder for
  // the packet at the state's position, which is `failed`.
  base::Status status = base::Status::OK;
  Packet failed;
};

// Up to this many cells after the last row are overwritten.
inline constexpr std::size_t kPacketRowSlack = 64;

// Fills rows with the packets from `state` on, as PacketDecoder decodes them. Columns have room for `room`
// rows and the slack. Stops soon after `limit`.
[[nodiscard]] FilledPackets fill_packets(base::Bytes stream, DecoderState& state, const Errata& errata,
                                         const PacketColumns& columns, std::size_t room,
                                         std::uint64_t limit = UINT64_MAX,
                                         base::cpu::Isa isa = base::cpu::isa_choice().isa) noexcept;

}  // namespace ptkit::packet
