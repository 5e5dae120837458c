// Detects a stream without TNT packets (IA32_RTIT_CTL.DisTNT) if the configuration does not have the bit.
#pragma once

#include "base/bytes.h"
#include "packet/decoder.h"

namespace ptkit::flow {

class TntProbe {
 public:
  explicit TntProbe(base::Bytes stream) : stream_(stream) {}

  // True if the stream has no TNT packet, but so many TIPs that the code must have conditional branches. The
  // first call scans the stream.
  [[nodiscard]] bool no_tnt() {
    if (!scanned_) {
      scanned_ = true;
      no_tnt_ = scan();
    }
    return no_tnt_;
  }

 private:
  static constexpr unsigned kEnoughTargets = 16;

  [[nodiscard]] bool scan() const {
    packet::PacketDecoder packets(stream_);
    unsigned targets = 0;
    base::Status status = packets.sync_forward(0);
    while (status == base::Status::OK) {
      packet::Packet packet;
      status = packets.next(packet);
      if (status == base::Status::END_OF_STREAM) break;
      if (status != base::Status::OK) {
        status = packets.sync_forward();
        continue;
      }
      if (packet.kind == packet::PacketKind::TNT_8 || packet.kind == packet::PacketKind::TNT_64) return false;
      if (packet.kind == packet::PacketKind::TIP && targets < kEnoughTargets) ++targets;
    }
    return targets >= kEnoughTargets;
  }

  base::Bytes stream_;
  bool scanned_ = false;
  bool no_tnt_ = false;
};

}  // namespace ptkit::flow
