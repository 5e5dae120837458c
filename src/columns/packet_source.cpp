#include "columns/packet_source.h"

#include <algorithm>

namespace ptkit::columns {
namespace {

// The first bytes of what could not be decoded, as a little-endian number.
[[nodiscard]] std::uint64_t bytes_as_number(base::Bytes stream, std::uint64_t offset,
                                            std::size_t count) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = std::min<std::size_t>(count, 8); i-- > 0;) value = value << 8 | stream[offset + i];
  return value;
}

}  // namespace

bool PacketSource::begin() {
  sync_ = false;
  const auto status = decoder_.sync_forward(0);
  const std::uint64_t size = decoder_.stream().size();
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

void PacketSource::recover(const packet::Packet& packet, base::Status status) {
  const std::uint64_t offset = decoder_.position();
  const std::uint64_t left = decoder_.stream().size() - offset;
  const std::uint64_t looked_at =
      std::clamp<std::uint64_t>(packet.size, std::min<std::uint64_t>(1, left), left);
  flow::FlowError error;
  error.place = {offset, offset};
  error.code = status;
  error.argument = bytes_as_number(decoder_.stream(), offset, static_cast<std::size_t>(looked_at));
  error.argument2 = looked_at;
  sink_.on_error(error);
  flow::Gap gap;
  gap.begin = offset;
  gap.cause = flow::GapCause::ERROR;
  gap.code = status;
  const bool found = decoder_.sync_forward(offset + 1) == base::Status::OK;
  gap.end = found ? decoder_.position() : decoder_.stream().size();
  sink_.on_gap(gap);
}

bool PacketSource::run() {
  if (sync_ && !begin()) return false;
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

}  // namespace ptkit::columns
