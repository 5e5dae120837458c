// libipt's packet decoder with ptkit's Packet.
#pragma once

#include <memory>

#include "packet/packet.h"
#include "trace/bundle.h"

namespace ptkit::flow::libipt {

// Has the interface of packet::PacketDecoder. libipt splits the bytes and reads the fields. This class joins
// runs of PAD, rebuilds the IP and sets the PSB+ flag, which libipt does not. Expected differences: BBP, BIP,
// BEP are BAD_OPCODE; CFE and EVD need version 2.1, TRIG needs 2.2; a reserved IPBytes value is BAD_PACKET; a
// truncated packet is END_OF_STREAM.
class ReferencePackets {
 public:
  ReferencePackets(base::Bytes stream, const trace::Configuration& configuration);
  ~ReferencePackets();
  ReferencePackets(ReferencePackets&&) noexcept;
  ReferencePackets& operator=(ReferencePackets&&) noexcept;

  [[nodiscard]] base::Status next(packet::Packet& out) noexcept;
  // Moves to the first PSB at or after `from`; NO_SYNC if there is none.
  [[nodiscard]] base::Status sync_forward(std::uint64_t from) noexcept;
  // Continues at `offset`, after a packet that libipt does not know. Keeps the last IP.
  [[nodiscard]] base::Status set_position(std::uint64_t offset) noexcept;
  [[nodiscard]] std::uint64_t position() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptkit::flow::libipt
