#include "formats/perf_export/packets.h"

#include <algorithm>

#include "packet/scan.h"
#include "packet/windows.h"

namespace ptkit::formats::perf {

namespace {

using packet::PacketKind;

constexpr std::size_t kModeBytes = std::size_t{64} << 10U;

// False: a PIP without NR: host code, or a CPU without virtual machines.
bool find_non_root(base::Bytes bytes, std::uint64_t begin, std::vector<std::uint64_t>& found) {
  packet::PacketDecoder decoder(bytes);
  bool more = decoder.sync_forward(0) == base::Status::OK;
  packet::Packet packet;
  while (more) {
    const base::Status status = decoder.next(packet);
    if (status == base::Status::END_OF_STREAM) break;
    if (status != base::Status::OK) {
      more = decoder.sync_forward() == base::Status::OK;
    } else if (packet.kind == PacketKind::PIP) {
      if ((packet.flags & packet::Packet::NR) == 0) return false;
      found.push_back(begin + packet.offset + 2);  // after the opcode
    }
  }
  return true;
}

// Calls `look` with each window of a stream and its offset until `look` returns false. False: stopped by
// go_on.
template <typename Look>
bool for_windows(const trace::Stream& stream, const GoOn& go_on, const Look& look) {
  packet::PsbWindows windows(stream.data);
  for (base::Bytes bytes = windows.next(); !bytes.empty(); bytes = windows.next()) {
    if (go_on && !go_on()) return false;
    if (!look(bytes, windows.begin())) break;
  }
  return true;
}

bool survey_kinds(const trace::Stream& stream, const GoOn& go_on, StreamPackets& out) {
  return for_windows(stream, go_on, [&out](base::Bytes bytes, std::uint64_t) {
    packet::PacketCounter counter(bytes, true);
    static_cast<void>(counter.run());
    for (std::size_t i = 0; i < packet::kPacketKinds; ++i) {
      if (counter.counts().packets[i] != 0) out.kinds.set(i);
    }
    return true;
  });
}

bool survey_guests(const trace::Stream& stream, const GoOn& go_on, StreamPackets& out) {
  return for_windows(stream, go_on, [&out](base::Bytes bytes, std::uint64_t begin) {
    const bool all = find_non_root(bytes, begin, out.non_root);
    if (!all) out.non_root.clear();
    return all;
  });
}

}  // namespace

std::optional<std::vector<StreamPackets>> survey_packets(const trace::TraceBundle& bundle,
                                                         const GoOn& go_on) {
  std::vector<StreamPackets> all;
  for (const trace::Stream& stream : bundle.streams) {
    StreamPackets& one = all.emplace_back();
    if (stream.kind != trace::StreamKind::PROCESSOR_TRACE) continue;
    if (!survey_kinds(stream, go_on, one)) return std::nullopt;
    if (one.has(PacketKind::PIP) && !survey_guests(stream, go_on, one)) return std::nullopt;
  }
  return all;
}

bool is_32_bit(const trace::TraceBundle& bundle) {
  bool narrow = false;
  for (const trace::Stream& stream : bundle.streams) {
    if (stream.kind != trace::StreamKind::PROCESSOR_TRACE) continue;
    const trace::TraceBuffer data = stream.data.again();
    packet::PacketDecoder decoder(data.part(0, kModeBytes));
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

std::optional<std::uint64_t> ip_of_psb(base::Bytes bytes) {
  packet::PacketDecoder decoder(bytes);
  packet::Packet packet;
  while (decoder.next(packet) == base::Status::OK && packet.kind != PacketKind::PSBEND) {
    if (packet.kind == PacketKind::FUP && (packet.flags & packet::Packet::IP_KNOWN) != 0) return packet.ip;
  }
  return {};
}

std::uint64_t last_tsc(base::Bytes bytes) {
  std::uint64_t tsc = 0;
  packet::PacketDecoder decoder(bytes);
  if (decoder.sync_forward(0) != base::Status::OK) return 0;
  packet::Packet packet;
  while (decoder.next(packet) == base::Status::OK) {
    if (packet.kind == PacketKind::TSC) tsc = packet.payload;
  }
  return tsc;
}

}  // namespace ptkit::formats::perf
