#include "formats/perf_write_packets.h"

#include <algorithm>

namespace ptkit::formats::perf {

namespace {

using packet::PacketKind;

constexpr std::uint64_t kCountedBytes = std::uint64_t{16} << 20U;  // between two looks for whether to go on
constexpr std::uint64_t kDecodedBytes = std::uint64_t{1} << 20U;   // the same, packet by packet
constexpr std::size_t kModeBytes = std::size_t{64} << 10U;

// False: it was not to go on.
bool find_non_root(base::Bytes bytes, const GoOn& go_on, std::vector<std::uint64_t>& found) {
  packet::PacketDecoder decoder(bytes);
  bool more = decoder.sync_forward(0) == base::Status::OK;
  packet::Packet packet;
  for (std::uint64_t next = kDecodedBytes; more;) {
    const base::Status status = decoder.next(packet);
    if (status == base::Status::END_OF_STREAM) break;
    if (status != base::Status::OK) {
      more = decoder.sync_forward() == base::Status::OK;
    } else if (packet.kind == PacketKind::PIP) {
      if ((packet.flags & packet::Packet::NR) == 0) {
        found.clear();
        return true;
      }
      found.push_back(packet.offset + 2);  // behind the opcode
    }
    if (decoder.state().position < next) continue;
    if (go_on && !go_on()) return false;
    next = decoder.state().position + kDecodedBytes;
  }
  return true;
}

}  // namespace

std::optional<std::vector<StreamPackets>> look_at_packets(const trace::TraceBundle& bundle,
                                                          const GoOn& go_on) {
  std::vector<StreamPackets> all;
  for (const trace::Stream& stream : bundle.streams) {
    StreamPackets& one = all.emplace_back();
    if (stream.kind != trace::StreamKind::PROCESSOR_TRACE) continue;
    const base::Bytes bytes = stream.data.bytes();
    packet::PacketCounter counter(bytes, true);
    do {
      if (go_on && !go_on()) return std::nullopt;
    } while (counter.run(kCountedBytes));
    one.counts = counter.counts();
    if (one.has(PacketKind::PIP) && !find_non_root(bytes, go_on, one.non_root)) return std::nullopt;
  }
  return all;
}

bool is_32_bit(const trace::TraceBundle& bundle) {
  bool narrow = false;
  for (const trace::Stream& stream : bundle.streams) {
    if (stream.kind != trace::StreamKind::PROCESSOR_TRACE) continue;
    packet::PacketDecoder decoder(stream.data.part(0, std::min(stream.data.size(), kModeBytes)));
    if (decoder.sync_forward(0) != base::Status::OK) continue;
    packet::Packet packet;
    while (decoder.next(packet) == base::Status::OK) {
      if (packet.kind != PacketKind::MODE_EXEC) continue;
      if (packet.payload != 32) return false;
      narrow = true;
    }
  }
  return narrow;
}

std::uint64_t last_tsc(base::Bytes bytes) {
  constexpr std::size_t kSearched = std::size_t{256} << 10U;
  std::uint64_t tsc = 0;
  packet::PacketDecoder decoder(bytes.last(std::min(bytes.size(), kSearched)));
  if (decoder.sync_forward(0) != base::Status::OK) return 0;
  packet::Packet packet;
  while (decoder.next(packet) == base::Status::OK) {
    if (packet.kind == PacketKind::TSC) tsc = packet.payload;
  }
  return tsc;
}

}  // namespace ptkit::formats::perf
