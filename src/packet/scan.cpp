#include "packet/scan.h"

#include <algorithm>

#include "packet/scan_kernels.h"

namespace ptkit::packet {
namespace {

scan::CountKernel count_kernel(base::cpu::Isa isa) noexcept {
#if PT_SIMD_X86
  if (isa == base::cpu::Isa::AVX512) return scan::count_avx512;
#endif
  static_cast<void>(isa);
  return scan::count_scalar;
}

scan::FillKernel fill_kernel(base::cpu::Isa isa) noexcept {
#if PT_SIMD_X86
  if (isa == base::cpu::Isa::AVX512) return scan::fill_avx512;
#endif
  static_cast<void>(isa);
  return scan::fill_scalar;
}

void count(const Packet& packet, PacketCounts& counts) noexcept {
  const bool pad = packet.kind == PacketKind::PAD;
  counts.packets[static_cast<std::size_t>(packet.kind)] += pad ? packet.payload : 1;
  const bool tnt = packet.kind == PacketKind::TNT_8 || packet.kind == PacketKind::TNT_64;
  if (tnt) counts.tnt_bits += packet.payload2;
}

}  // namespace

PacketCounter::PacketCounter(base::Bytes stream, bool sync, const Errata& errata, base::cpu::Isa isa) noexcept
    : stream_(stream), errata_(errata), isa_(isa) {
  if (sync) resync(0);
}

void PacketCounter::resync(std::uint64_t from) noexcept {
  const std::uint64_t lost_from = state_.position;
  PacketDecoder decoder(stream_);
  // At the end of the stream the state is that of a decoder without a PSB.
  static_cast<void>(decoder.sync_forward(from));
  state_ = checkpoint_ = decoder.state();
  counts_.lost_bytes += state_.position - lost_from;
}

bool PacketCounter::run(std::uint64_t bytes) noexcept {
  const scan::CountKernel kernel = count_kernel(isa_);
  const std::uint64_t limit = bytes > stream_.size() ? stream_.size() : state_.position + bytes;
  while (state_.position < limit) {
    if (!state_.block_open) {
      scan::CountRun run{state_.position, limit, checkpoint_.position, errata_.skd007};
      kernel(stream_, run, counts_);
      state_.position = run.position;
      if (run.checkpoint != checkpoint_.position) checkpoint_ = DecoderState{.position = run.checkpoint};
    }
    PacketDecoder decoder(stream_, state_, errata_);
    Packet packet;
    const base::Status status = decoder.next(packet);
    if (status == base::Status::END_OF_STREAM) return false;
    if (status == base::Status::OK) {
      count(packet, counts_);
      state_ = decoder.state();
      if (packet.kind == PacketKind::PSB) checkpoint_ = DecoderState{.position = packet.offset};
    } else {
      ++counts_.errors;
      resync(state_.position + 1);
    }
  }
  return state_.position < stream_.size();
}

DecoderState PacketCounter::state() const noexcept {
  PacketDecoder decoder(stream_, checkpoint_, errata_);
  Packet packet;
  while (decoder.position() < state_.position) static_cast<void>(decoder.next(packet));
  DecoderState state = state_;
  state.last_ip = decoder.state().last_ip;
  state.last_ip_known = decoder.state().last_ip_known;
  state.in_psb = decoder.state().in_psb;
  return state;
}

FilledPackets fill_packets(base::Bytes stream, DecoderState& state, const Errata& errata,
                           const PacketColumns& columns, std::size_t room, std::uint64_t limit,
                           base::cpu::Isa isa) noexcept {
  const scan::FillKernel kernel = fill_kernel(isa);
  limit = std::min<std::uint64_t>(limit, stream.size());
  FilledPackets filled;
  PacketDecoder decoder(stream, state, errata);
  while (filled.rows < room) {
    if (!state.block_open && state.last_ip_known) {
      filled.rows +=
          kernel(stream, state, errata.skd007, columns.from(filled.rows), room - filled.rows, limit);
      if (filled.rows >= room) break;
    }
    if (state.position >= limit && limit < stream.size()) break;
    decoder.set_state(state);
    filled.status = decoder.next(filled.failed);
    if (filled.status != base::Status::OK) break;
    columns.put(filled.rows++, filled.failed);
    state = decoder.state();
  }
  return filled;
}

}  // namespace ptkit::packet
