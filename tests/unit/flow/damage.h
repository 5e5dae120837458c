// Damaged streams: at any byte, and packet by packet.
#pragma once

#include <random>
#include <vector>

#include "packet/decoder.h"
#include "packet/encoder.h"

namespace ptkit::flow::damage {

class Damage {
 public:
  Damage(std::vector<std::uint8_t> bytes, std::uint64_t seed) : bytes_(std::move(bytes)), random_(seed) {}

  static constexpr unsigned kKinds = 13;

  // One thing of this kind.
  void add(unsigned kind) {
    if (bytes_.empty()) return;
    switch (kind % kKinds) {
      case 0:  // a byte becomes another one
        bytes_[below(bytes_.size())] = static_cast<std::uint8_t>(random_());
        break;
      case 1:  // a bit flips
        bytes_[below(bytes_.size())] ^= static_cast<std::uint8_t>(1U << below(8));
        break;
      case 2: {  // a hole
        const std::size_t at = below(bytes_.size());
        erase(at, std::min(bytes_.size(), at + 1 + below(40)));
        break;
      }
      case 3: {  // bytes that mean nothing
        std::vector<std::uint8_t> more(1 + below(5));
        for (std::uint8_t& byte : more) byte = static_cast<std::uint8_t>(random_());
        insert(below(bytes_.size()), more);
        break;
      }
      case 4:  // the end is missing
        erase(bytes_.size() - below(bytes_.size() / 4 + 1), bytes_.size());
        break;
      default:
        add_to_packets(kind % kKinds);
        break;
    }
  }
  [[nodiscard]] std::vector<std::uint8_t>& bytes() noexcept { return bytes_; }

 private:
  using Kind = packet::PacketKind;

  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }
  void erase(std::size_t begin, std::size_t end) {
    bytes_.erase(bytes_.begin() + static_cast<std::ptrdiff_t>(begin),
                 bytes_.begin() + static_cast<std::ptrdiff_t>(end));
  }
  void insert(std::size_t at, const std::vector<std::uint8_t>& more) {
    bytes_.insert(bytes_.begin() + static_cast<std::ptrdiff_t>(at), more.begin(), more.end());
  }

  // Packets from somewhere on.
  [[nodiscard]] std::vector<packet::Packet> some_packets(std::size_t count) {
    packet::PacketDecoder packets(bytes_);
    std::vector<packet::Packet> all;
    base::Status status = packets.sync_forward(0);
    while (status == base::Status::OK) {
      packet::Packet packet;
      status = packets.next(packet);
      if (status == base::Status::OK) {
        all.push_back(packet);
      } else if (status != base::Status::END_OF_STREAM) {
        status = packets.sync_forward();
      }
    }
    if (all.size() <= count) return {};
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(below(all.size() - count));
    return {first, first + static_cast<std::ptrdiff_t>(count)};
  }

  void add_to_packets(unsigned kind) {
    const std::vector<packet::Packet> some = some_packets(4);
    if (some.empty()) return;
    const std::size_t at = some[0].offset;
    const std::size_t size = some[0].size;
    if (at + size > bytes_.size()) return;
    const std::vector<std::uint8_t> first(bytes_.begin() + static_cast<std::ptrdiff_t>(at),
                                          bytes_.begin() + static_cast<std::ptrdiff_t>(at + size));
    switch (kind) {
      case 5:  // some are missing
        erase(at, some[1 + below(3)].offset);
        break;
      case 6:  // later than they were
        insert(some[1 + below(3)].offset, first);
        erase(at, at + size);
        break;
      case 7:  // twice
        insert(at, first);
        break;
      case 8:
        insert(at, made(Kind::OVF, 0, 0));
        break;
      case 9: {
        std::vector<std::uint8_t> header = made(Kind::PSB, 0, 0);
        if (below(2) == 0) append(header, made(Kind::PSBEND, 0, 0));
        insert(at, header);
        break;
      }
      case 10:
        insert(at, state_packet());
        break;
      case 11: {  // other branches
        const std::uint64_t bits = random_();
        const std::size_t count = 1 + below(below(3) == 0 ? 47 : 6);
        insert(at,
               made(count > 6 ? Kind::TNT_64 : Kind::TNT_8, bits & ((std::uint64_t{1} << count) - 1), count));
        break;
      }
      default:  // an IP that means something else
        change_kind();
        break;
    }
  }
  void change_kind() {
    constexpr std::uint8_t kKindsOfIp[] = {0x0d, 0x11, 0x01, 0x1d};
    for (int tries = 0; tries < 20; ++tries) {
      const auto some = some_packets(1);
      if (some.empty()) return;
      const bool ip = some[0].kind == Kind::TIP || some[0].kind == Kind::TIP_PGE ||
                      some[0].kind == Kind::TIP_PGD || some[0].kind == Kind::FUP;
      if (!ip) continue;
      std::uint8_t& byte = bytes_[some[0].offset];
      byte = static_cast<std::uint8_t>((byte & 0xe0U) | kKindsOfIp[below(4)]);
      return;
    }
  }
  [[nodiscard]] std::vector<std::uint8_t> state_packet() {
    switch (below(9)) {
      case 0:
        return made(Kind::MODE_TSX, below(4), 0);
      case 1:
        return made(Kind::MODE_EXEC, 64, 1);
      case 2:
        return made(Kind::MODE_EXEC, 32, 2);
      case 3:
        return made(Kind::PIP, below(4) << 12U, 0);
      case 4:
        return made(Kind::CBR, 20, 0);
      case 5:
        return made(Kind::TRACE_STOP, 0, 0);
      case 6:
        return made(Kind::PSBEND, 0, 0);
      case 7:
        return made(Kind::CYC, random_() >> (1 + below(63)), 0);
      default:
        return made(Kind::TIP_PGD, 0, 0);
    }
  }
  static void append(std::vector<std::uint8_t>& to, const std::vector<std::uint8_t>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }
  static std::vector<std::uint8_t> made(Kind kind, std::uint64_t payload, std::uint64_t payload2) {
    packet::Packet packet;
    packet.kind = kind;
    packet.payload = payload;
    packet.payload2 = payload2;
    std::vector<std::uint8_t> out;
    static_cast<void>(packet::encode(packet, out));
    return out;
  }

  std::vector<std::uint8_t> bytes_;
  std::mt19937_64 random_;
};

}  // namespace ptkit::flow::damage
