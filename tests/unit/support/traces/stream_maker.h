// Builds trace streams packet by packet.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "packet/encoder.h"

namespace ptkit::formats::test {

class StreamMaker {
 public:
  using Kind = packet::PacketKind;

  StreamMaker& add(Kind kind, std::uint64_t payload = 0, std::uint64_t payload2 = 0) {
    packet::Packet packet;
    packet.kind = kind;
    packet.payload = payload;
    packet.payload2 = payload2;
    last = bytes_.size();
    EXPECT_EQ(packet::encode(packet, bytes_), base::Status::OK);
    return *this;
  }
  StreamMaker& psb() { return add(Kind::PSB).add(Kind::PSBEND); }  // PacketEn is 0
  // Execution from `ip` to `end`, where PacketEn becomes 0.
  StreamMaker& run(std::uint64_t ip, std::uint64_t end) {
    return add(Kind::TIP_PGE, ip & kIp, 3).add(Kind::FUP, end & kIp, 3).add(Kind::TIP_PGD, 0, 0);
  }
  StreamMaker& ptw(std::uint32_t command, std::uint32_t data) {
    return add(Kind::PTW, std::uint64_t{command} << 32U | data, 1);
  }
  StreamMaker& raw(const std::string& bytes) {
    last = bytes_.size();
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  [[nodiscard]] std::string text() const { return {bytes_.begin(), bytes_.end()}; }
  [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }

  std::uint64_t last = 0;  // offset of the last packet

 private:
  static constexpr std::uint64_t kIp = 0xffffffffffff;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace ptkit::formats::test
