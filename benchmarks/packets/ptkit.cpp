// Every packet: counted in bulk, with the last IP; checked row by row. PTKIT_FORCE_ISA says with which
// instructions.
#include <numeric>
#include <vector>

#include "common/packets.h"
#include "packet/scan.h"

namespace ptkit::bench {
namespace {

constexpr auto kPad = static_cast<std::size_t>(packet::PacketKind::PAD);

// The counts of packets but PAD, and their bytes: those of the stream that are neither PAD nor lost.
Outcome count(const trace::TraceBundle& bundle) {
  const base::Bytes stream = bundle.streams.front().data.bytes();
  packet::PacketCounter counter(stream, true);
  while (counter.run()) {
  }
  const packet::PacketCounts& counts = counter.counts();
  const std::uint64_t pads = counts.packets[kPad];
  Outcome outcome;
  outcome.rows = std::accumulate(counts.packets.begin(), counts.packets.end(), std::uint64_t{0}) - pads;
  outcome.errors = counts.errors;
  outcome.sum = stream.size() - counts.lost_bytes - pads;
  // Uses the last IP without letting it decide.
  if (counter.state().last_ip == UINT64_MAX && outcome.rows == 0) ++outcome.sum;
  return outcome;
}

Outcome check(const trace::TraceBundle& bundle) {
  constexpr std::size_t kRows = 4096;
  const base::Bytes stream = bundle.streams.front().data.bytes();
  std::vector<std::uint64_t> offset(kRows + packet::kPacketRowSlack);
  std::vector<std::uint32_t> size(offset.size());
  std::vector<std::uint8_t> kind(offset.size());
  packet::PacketColumns columns;
  columns.offset = offset.data();
  columns.size = size.data();
  columns.kind = kind.data();
  packet::PacketDecoder decoder(stream);
  PacketTally<true> tally;
  if (decoder.sync_forward(0) != base::Status::OK) return tally.outcome();
  for (;;) {
    packet::DecoderState state = decoder.state();
    const auto filled = packet::fill_packets(stream, state, {}, columns, kRows);
    for (std::size_t row = 0; row < filled.rows; ++row) {
      if (kind[row] != kPad) tally.add(offset[row], size[row], 0);
    }
    if (filled.status == base::Status::END_OF_STREAM) return tally.outcome();
    decoder.set_state(state);
    if (filled.status == base::Status::OK) continue;
    tally.add_error();
    if (decoder.sync_forward(decoder.position() + 1) != base::Status::OK) return tally.outcome();
  }
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::count, ptkit::bench::check});
}
