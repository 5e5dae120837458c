// Was the stream recorded without TNT packets (IA32_RTIT_CTL.DisTNT), if the configuration does not say?
#pragma once

#include "base/bytes.h"
#include "packet/decoder.h"

namespace ptkit::flow {

class TntProbe {
 public:
  explicit TntProbe(base::Bytes stream) : stream_(stream) {}

  // True if the whole stream has no TNT packet, yet so many targets that conditional branches must have been
  // among the code. Looks at the stream once, when first asked.
  [[nodiscard]] bool no_tnt() {
    if (!asked_) {
      asked_ = true;
      no_tnt_ = look();
    }
    return no_tnt_;
  }

 private:
  static constexpr unsigned kEnoughTargets = 16;

  [[nodiscard]] bool look() const {
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
  bool asked_ = false;
  bool no_tnt_ = false;
};

}  // namespace ptkit::flow
