// Time alone: the interval of every place that packets have, asked for in order. The places are made before.
#include <vector>

#include "common/contest.h"
#include "packet/decoder.h"
#include "time/track.h"

namespace ptkit::bench {
namespace {

struct Asked {
  std::uint64_t since;
  std::uint64_t offset;
};

// The branches of a TNT packet may be as old as the packet before it; all else is as old as its packet.
std::vector<Asked> places_of(base::Bytes stream) {
  std::vector<Asked> places;
  packet::PacketDecoder decoder(stream);
  packet::Packet packet;
  std::uint64_t before = 0;
  if (decoder.sync_forward(0) != base::Status::OK) return places;
  for (;;) {
    const base::Status status = decoder.next(packet);
    if (status == base::Status::END_OF_STREAM) return places;
    if (status != base::Status::OK) {
      if (decoder.sync_forward() != base::Status::OK) return places;
      continue;
    }
    const bool tnt = packet.kind == packet::PacketKind::TNT_8 || packet.kind == packet::PacketKind::TNT_64;
    if (tnt || packet::has_ip_payload(packet.kind)) {
      places.push_back({tnt ? before : packet.offset, packet.offset});
      before = packet.offset;
    }
  }
}

const std::vector<Asked>& places_of(const trace::TraceBundle& bundle) {
  static const std::vector<Asked> places = places_of(bundle.streams.front().data.bytes());
  return places;
}

template <bool kDigest>
Outcome ask(const trace::TraceBundle& bundle) {
  const auto& places = places_of(bundle);
  const trace::Stream& stream = bundle.streams.front();
  time::TimeTrack track(stream.data.bytes(), bundle.configuration.clock,
                        packet::errata_for(bundle.configuration.cpu), stream.losses);
  Outcome outcome;
  Digest digest;
  for (const Asked& place : places) {
    const time::TimeRange range = track.at(place.since, place.offset);
    outcome.sum += range.tsc + range.error;
    if constexpr (kDigest) {
      digest.add(range.tsc);
      digest.add(range.error);
      digest.add(static_cast<std::uint64_t>(range.source) << 1 | static_cast<std::uint64_t>(range.known));
    }
  }
  outcome.rows = places.size();
  outcome.digest = digest.value();
  return outcome;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::ask<false>, ptkit::bench::ask<true>});
}
