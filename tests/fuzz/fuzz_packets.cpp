// Any bytes: positions advance, sizes add up, and what was decoded survives encoding.
#include <cstdlib>

#include "packet/decoder.h"
#include "packet/encoder.h"

namespace {

using ptkit::base::Status;
using ptkit::packet::DecoderState;
using ptkit::packet::Packet;
using ptkit::packet::PacketDecoder;
using ptkit::packet::PacketKind;

void require(bool holds) {
  if (!holds) std::abort();
}

// Decode -> encode -> decode gives the same packet, and the encoded form is one that encodes to itself.
void check_packet(const Packet& packet, const DecoderState& before) {
  if (packet.kind == PacketKind::INVALID) return;
  std::vector<std::uint8_t> bytes;
  require(ptkit::packet::encode(packet, bytes, before.block_items_4) == Status::OK);
  require(bytes.size() <= packet.size);  // reserved bits and long CYCs are made canonical
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  run({data, size}, false);
  run({data, size}, true);
  return 0;
}
