#include "formats/common/stop_byte.h"

#include <algorithm>

#include "packet/decoder.h"

namespace ptkit::formats {

namespace {

constexpr std::uint8_t kStopByte = 0x55;
constexpr std::size_t kTail = 256 * 1024;  // bytes at the end that are searched for a PSB

}  // namespace

trace::TraceBuffer without_stop_byte(trace::TraceBuffer stream) {
  const base::Bytes bytes = stream.bytes();
  if (bytes.empty() || bytes.back() != kStopByte) return stream;
  packet::PacketDecoder packets(bytes.last(std::min(bytes.size(), kTail)));
  if (packets.sync_forward(0) != base::Status::OK) return stream;
  packet::Packet packet;
  base::Status status = base::Status::OK;
  while (status == base::Status::OK) status = packets.next(packet);
  const bool last = packets.position() + 1 == packets.stream().size();
  return status == base::Status::BAD_OPCODE && last ? stream.slice(0, bytes.size() - 1) : stream;
}

}  // namespace ptkit::formats
