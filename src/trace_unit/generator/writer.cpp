#include "trace_unit/generator/writer.h"

#include <utility>

#include "packet/encoder.h"

namespace ptkit::trace_unit::generator {

PacketWriter::PacketWriter(Output output, std::size_t chunk_bytes)
    : output_(std::move(output)), chunk_bytes_(chunk_bytes) {}

void PacketWriter::put(const packet::Packet& packet, bool block_items_4) {
  const std::size_t before = chunk_.size();
  const base::Status status = packet::encode(packet, chunk_, block_items_4);
  if (status != base::Status::OK && status_ == base::Status::OK) status_ = status;
  written_ += chunk_.size() - before;
  if (chunk_.size() >= chunk_bytes_) flush();
}

void PacketWriter::append(base::Bytes packets) {
  chunk_.insert(chunk_.end(), packets.begin(), packets.end());
  written_ += packets.size();
  if (chunk_.size() >= chunk_bytes_) flush();
}

void PacketWriter::put_ip(packet::PacketKind kind, std::uint64_t ip) {
  const packet::CompressedIp compressed = packet::compress_ip(ip, last_ip_, last_ip_known_);
  last_ip_ = ip;
  last_ip_known_ = true;
  packet::Packet packet;
  packet.kind = kind;
  packet.payload = compressed.payload;
  packet.payload2 = compressed.ip_bytes;
  put(packet);
}

void PacketWriter::put_without_ip(packet::PacketKind kind) {
  packet::Packet packet;
  packet.kind = kind;
  put(packet);
}

void PacketWriter::flush() {
  if (!chunk_.empty() && output_) output_(chunk_);
  chunk_.clear();
}

}  // namespace ptkit::trace_unit::generator
