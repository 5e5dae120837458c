// Emits the packets of one stream as rows. Bytes that are no packet give an error row, and packets continue
// at the next PSB.
#pragma once

#include <algorithm>
#include <type_traits>

#include "packet/decoder.h"
#include "tables/columns/rows/row_sink.h"

namespace ptkit::tables::columns {

// `Decoder` is packet::PacketDecoder, or one with its contract.
template <typename Decoder>
class PacketSource final : public flow::RowSource {
 public:
  // `sync`: start at the first PSB (with a gap row for the bytes before it), else at the first byte.
  PacketSource(base::Bytes stream, Decoder decoder, bool sync, RowSink& sink)
      : stream_(stream), decoder_(std::move(decoder)), sync_(sync), sink_(sink) {}

  [[nodiscard]] bool run() override;
  [[nodiscard]] std::uint64_t position() const noexcept override { return decoder_.position(); }

 private:
  [[nodiscard]] bool begin();
  [[nodiscard]] bool run_in_bulk();
  void recover(const packet::Packet& packet, base::Status status);

  base::Bytes stream_;
  Decoder decoder_;
  bool sync_;
  RowSink& sink_;
};

// The first bytes of an undecodable packet, as a little-endian number.
[[nodiscard]] inline std::uint64_t bytes_as_number(base::Bytes stream, std::uint64_t offset,
                                                   std::size_t count) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = std::min<std::size_t>(count, 8); i-- > 0;) value = value << 8 | stream[offset + i];
  return value;
}

template <typename Decoder>
bool PacketSource<Decoder>::begin() {
  sync_ = false;
  if (stream_.empty()) return false;  // of a CPU on which nothing was traced
  const auto status = decoder_.sync_forward(0);
  const std::uint64_t size = stream_.size();
  if (status != base::Status::OK) {
    flow::FlowError error;
    error.code = base::Status::NO_SYNC;
    sink_.on_error(error);
  }
  const std::uint64_t begin = status == base::Status::OK ? decoder_.position() : size;
  if (begin > 0) {
    flow::Gap gap;
    gap.end = begin;
    gap.cause = flow::GapCause::START;
    gap.code = status;
    sink_.on_gap(gap);
  }
  return status == base::Status::OK;
}

template <typename Decoder>
void PacketSource<Decoder>::recover(const packet::Packet& packet, base::Status status) {
  const std::uint64_t offset = decoder_.position();
  const std::uint64_t left = stream_.size() - offset;
  const std::uint64_t looked_at =
      std::clamp<std::uint64_t>(packet.size, std::min<std::uint64_t>(1, left), left);
  flow::FlowError error;
  error.span = {offset, offset};
  error.code = status;
  error.argument = bytes_as_number(stream_, offset, static_cast<std::size_t>(looked_at));
  error.argument2 = looked_at;
  sink_.on_error(error);
  flow::Gap gap;
  gap.begin = offset;
  gap.cause = flow::GapCause::ERROR;
  gap.code = status;
  const bool found = decoder_.sync_forward(offset + 1) == base::Status::OK;
  gap.end = found ? decoder_.position() : stream_.size();
  sink_.on_gap(gap);
}

template <typename Decoder>
bool PacketSource<Decoder>::run_in_bulk() {
  do {
    packet::DecoderState state = decoder_.state();
    const auto filled = sink_.fill_packets(stream_, state, decoder_.errata());
    decoder_.set_state(state);
    if (filled.status == base::Status::END_OF_STREAM) return false;
    if (filled.status != base::Status::OK) recover(filled.failed, filled.status);
  } while (!sink_.full());
  return true;
}

template <typename Decoder>
bool PacketSource<Decoder>::run() {
  if (sync_ && !begin()) return false;
  if constexpr (std::is_same_v<Decoder, packet::PacketDecoder>) {
    if (sink_.takes_packets_in_bulk()) return run_in_bulk();
  }
  packet::Packet packet;
  while (true) {
    const auto status = decoder_.next(packet);
    if (status == base::Status::END_OF_STREAM) return false;
    if (status == base::Status::OK) {
      sink_.on_packet(packet);
    } else {
      recover(packet, status);
    }
    if (sink_.full()) return true;
  }
}

}  // namespace ptkit::tables::columns
