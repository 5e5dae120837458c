// Every packet: libipt's packet decoder.
#include "common/library.h"
#include "common/packets.h"

namespace ptkit::bench {
namespace {

template <bool kDigest>
Outcome decode(const trace::TraceBundle& bundle) {
  const pt_config config = library_config(bundle);
  const std::unique_ptr<pt_packet_decoder, void (*)(pt_packet_decoder*)> decoder(
      pt_pkt_alloc_decoder(&config), pt_pkt_free_decoder);
  PacketTally<kDigest> tally;
  pt_packet packet{};
  int status = pt_pkt_sync_forward(decoder.get());
  while (status >= 0) {
    std::uint64_t offset = 0;
    if constexpr (kDigest) static_cast<void>(pt_pkt_get_offset(decoder.get(), &offset));
    status = pt_pkt_next(decoder.get(), &packet, sizeof(packet));
    if (status == -pte_eos) break;
    if (status < 0) {
      tally.add_error();
      status = pt_pkt_sync_forward(decoder.get());
      continue;
    }
    if (packet.type == ppt_pad) continue;
    tally.add(offset, packet.size, packet.payload.tsc.tsc);
  }
  return tally.outcome();
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::decode<false>, ptkit::bench::decode<true>});
}
