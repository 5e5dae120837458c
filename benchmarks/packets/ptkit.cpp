// Every packet: our packet decoder.
#include "common/packets.h"
#include "packet/decoder.h"

namespace ptkit::bench {
namespace {

template <bool kDigest>
Outcome decode(const trace::TraceBundle& bundle) {
  packet::PacketDecoder decoder(bundle.streams.front().data.bytes());
  PacketTally<kDigest> tally;
  packet::Packet packet;
  if (decoder.sync_forward(0) != base::Status::OK) return tally.outcome();
  for (;;) {
    const base::Status status = decoder.next(packet);
    if (status == base::Status::END_OF_STREAM) return tally.outcome();
    if (status != base::Status::OK) {
      tally.add_error();
      if (decoder.sync_forward() != base::Status::OK) return tally.outcome();
      continue;
    }
    // A run of PAD is one packet of ours.
    if (packet.kind == packet::PacketKind::PAD) continue;
    tally.add(packet.offset, packet.size, packet.payload);
  }
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::decode<false>, ptkit::bench::decode<true>});
}
