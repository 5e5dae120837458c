#include "packet/counters.h"

#include <algorithm>

#include "packet/decoder.h"

namespace ptkit::packet {

PacketCounters count_packets(base::Bytes stream) noexcept {
  PacketCounters counters;
  PacketDecoder decoder(stream);
  std::uint64_t done = 0;  // bytes that are accounted for
  while (decoder.sync_forward() == base::Status::OK) {
    // A PSB may begin inside a packet that was already counted.
    counters.lost_bytes += std::max(decoder.position(), done) - done;
    Packet packet;
    base::Status status = decoder.next(packet);
    for (; status == base::Status::OK; status = decoder.next(packet)) counters.add(packet);
    done = decoder.position();
    if (status == base::Status::END_OF_STREAM) return counters;
    ++counters.errors;
  }
  counters.lost_bytes += stream.size() - done;
  return counters;
}

}  // namespace ptkit::packet
