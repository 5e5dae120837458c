// Packets to the output: bytes by the packet encoder, IP compression, chunks.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "packet/packet.h"

namespace ptkit::trace_unit::generator {

using Output = std::function<void(base::Bytes)>;

class PacketWriter {
 public:
  PacketWriter(Output output, std::size_t chunk_bytes);

  void put(const packet::Packet& packet, bool block_items_4 = false);
  void put_ip(packet::PacketKind kind, std::uint64_t ip);  // compressed against the last IP
  void put_without_ip(packet::PacketKind kind);            // IPBytes 0
  void append(base::Bytes packets);                        // encoded elsewhere
  void forget_last_ip() noexcept { last_ip_known_ = false; }
  [[nodiscard]] bool last_ip_known() const noexcept { return last_ip_known_; }
  [[nodiscard]] std::uint64_t last_ip() const noexcept { return last_ip_; }
  void set_last_ip(std::uint64_t ip) noexcept { last_ip_ = ip; }

  void flush();  // hands over what has been collected
  [[nodiscard]] std::uint64_t bytes_written() const noexcept { return written_; }
  [[nodiscard]] base::Status status() const noexcept {
    return status_;
  }  // the first packet that could not be encoded

 private:
  Output output_;
  std::vector<std::uint8_t> chunk_;
  std::size_t chunk_bytes_;
  std::uint64_t written_ = 0;
  std::uint64_t last_ip_ = 0;
  bool last_ip_known_ = false;
  base::Status status_ = base::Status::OK;
};

}  // namespace ptkit::trace_unit::generator
