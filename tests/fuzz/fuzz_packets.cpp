// Any bytes: positions advance, sizes add up, decoded packets survive encoding, and bulk kernels give the
// same packets.
#include <cstdlib>

#include "packet/decoder.h"
#include "packet/encoder.h"
#include "packet/scan.h"

namespace {

using ptkit::base::Status;
using ptkit::packet::DecoderState;
using ptkit::packet::Packet;
using ptkit::packet::PacketDecoder;
using ptkit::packet::PacketKind;

void require(bool holds) {
  if (!holds) std::abort();
}

// Decode, encode, decode gives the same packet, and the encoded form encodes to itself.
void check_packet(const Packet& packet, const DecoderState& before) {
  if (packet.kind == PacketKind::INVALID) return;
  std::vector<std::uint8_t> bytes;
  require(ptkit::packet::encode(packet, bytes, before.block_items_4) == Status::OK);
  require(bytes.size() <= packet.size);  // reserved bits and long CYCs become canonical
  DecoderState state = before;
  state.position = 0;
  PacketDecoder decoder(bytes, state);
  Packet again;
  require(decoder.next(again) == Status::OK);
  require(decoder.position() == bytes.size());
  require(again.kind == packet.kind && again.payload == packet.payload && again.payload2 == packet.payload2);
  require(again.flags == packet.flags && again.ip == packet.ip);
  std::vector<std::uint8_t> twice;
  require(ptkit::packet::encode(again, twice, before.block_items_4) == Status::OK);
  require(twice == bytes);
}

void run(ptkit::base::Bytes stream, bool errata) {
  PacketDecoder decoder(stream, {}, errata ? ptkit::packet::errata_for({}) : ptkit::packet::Errata{});
  std::uint64_t last_sync = 0;
  bool synced = false;
  for (;;) {
    const DecoderState before = decoder.state();
    Packet packet;
    const Status status = decoder.next(packet);
    require(packet.offset == before.position);
    require(packet.offset + packet.size <= stream.size());
    if (status == Status::OK) {
      require(packet.size > 0 && decoder.position() == packet.offset + packet.size);
      check_packet(packet, before);
      continue;
    }
    require(decoder.position() == before.position);
    if (status == Status::END_OF_STREAM) return;
    if (decoder.sync_forward() != Status::OK) return;
    require(!synced || decoder.position() > last_sync);
    last_sync = decoder.position();
    synced = true;
  }
}

// Rows and counts of one instruction set against the decoder's, up to the first error.
void run_in_bulk(ptkit::base::Bytes stream, bool errata, ptkit::base::cpu::Isa isa) {
  const auto known = errata ? ptkit::packet::errata_for({}) : ptkit::packet::Errata{};
  std::vector<std::uint64_t> offset(stream.size() + 100), ip(offset), payload(offset), payload2(offset);
  std::vector<std::uint32_t> size(offset.size());
  std::vector<std::uint8_t> kind(offset.size()), flags(offset.size());
  DecoderState state;
  const auto filled = ptkit::packet::fill_packets(
      stream, state, known,
      {offset.data(), size.data(), kind.data(), flags.data(), ip.data(), payload.data(), payload2.data()},
      stream.size() + 1, UINT64_MAX, isa);
  PacketDecoder decoder(stream, {}, known);
  Packet packet;
  for (std::size_t row = 0; row < filled.rows; ++row) {
    require(decoder.next(packet) == Status::OK);
    require(offset[row] == packet.offset && size[row] == packet.size && flags[row] == packet.flags);
    require(kind[row] == static_cast<std::uint8_t>(packet.kind) && ip[row] == packet.ip);
    require(payload[row] == packet.payload && payload2[row] == packet.payload2);
  }
  require(decoder.next(packet) == filled.status && decoder.position() == state.position);
  ptkit::packet::PacketCounter counter(stream, false, known, isa);
  ptkit::packet::PacketCounter simple(stream, false, known, ptkit::base::cpu::Isa::SCALAR);
  require(!counter.run() && !simple.run() && counter.counts() == simple.counts());
  require(counter.state().last_ip == simple.state().last_ip);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  run({data, size}, false);
  run({data, size}, true);
  for (const auto isa : ptkit::base::cpu::kIsas) {
    if (!ptkit::base::cpu::isa_available(isa)) continue;
    run_in_bulk({data, size}, false, isa);
    run_in_bulk({data, size}, true, isa);
  }
  return 0;
}
