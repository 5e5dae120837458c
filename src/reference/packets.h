// libipt's packet decoder behind our Packet.
#pragma once

#include <memory>

#include "packet/packet.h"
#include "trace/bundle.h"

namespace ptkit::reference {

// The contract is packet::PacketDecoder's. The library splits the bytes and reads the fields; runs of PAD are
// joined here, and the IP is rebuilt and the PSB+ flag set here (the library gives neither). It knows no BBP,
// BIP, BEP (BAD_OPCODE), and no CFE, EVD, TRIG before 2.1 and 2.2; an IP packet with a reserved IPBytes value
// is BAD_PACKET; a packet that the stream's end cuts is END_OF_STREAM.
class ReferencePackets {
 public:
  ReferencePackets(base::Bytes stream, const trace::Configuration& configuration);
  ~ReferencePackets();
  ReferencePackets(ReferencePackets&&) noexcept;
  ReferencePackets& operator=(ReferencePackets&&) noexcept;

  [[nodiscard]] base::Status next(packet::Packet& out) noexcept;
  // Moves to the first PSB at or after `from`; NO_SYNC if there is none.
  [[nodiscard]] base::Status sync_forward(std::uint64_t from) noexcept;
  // Goes on at `offset` as if it were a packet's beginning: over what the library does not know. Keeps the
  // last IP.
  [[nodiscard]] base::Status set_position(std::uint64_t offset) noexcept;
  [[nodiscard]] std::uint64_t position() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptkit::reference
