// Streams for tests that compare bulk work with PacketDecoder.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>

#include "helpers.h"
#include "unit/support/traces/corpus.h"

namespace ptkit::packet::test {

// Frequencies of PADs, TNTs, IP packets and others in each kind of stream.
struct Mix {
  const char* name;
  unsigned pad, tnt, ip, cyc, other;  // weights
  bool blocks = false;                // BBP and its items
};
inline constexpr Mix kMixes[] = {
    {"all kinds", 1, 1, 1, 1, 10, true}, {"plain", 30, 30, 30, 0, 1},
    {"timing", 1, 20, 20, 30, 10},       {"tnt", 0, 200, 5, 0, 1},
    {"pads", 200, 5, 5, 0, 1},           {"ips", 0, 1, 100, 1, 1},
    {"long", 1, 0, 10, 0, 40},
};

// Packets of all kinds in a row, all valid.
inline Buffer random_stream(std::uint64_t seed, const Mix& mix, std::size_t size) {
  RandomPackets random(seed);
  Buffer bytes;
  if (seed % 4 != 0) bytes = psb();
  bool block = false;
  bool items_4 = false;
  const unsigned total = mix.pad + mix.tnt + mix.ip + mix.cyc + mix.other;
  while (bytes.size() < size) {
    auto pick = static_cast<unsigned>(random.bits(32) % total);
    constexpr PacketKind kIp[] = {PacketKind::TIP, PacketKind::TIP_PGE, PacketKind::TIP_PGD, PacketKind::FUP};
    auto kind = static_cast<PacketKind>(random.bits(16) % (kPacketKinds - 1));
    if (pick < mix.pad) {
      kind = PacketKind::PAD;
    } else if ((pick -= mix.pad) < mix.tnt) {
      kind = PacketKind::TNT_8;
    } else if ((pick -= mix.tnt) < mix.ip) {
      kind = kIp[random.bits(16) % 4];
    } else if (pick - mix.ip < mix.cyc) {
      kind = PacketKind::CYC;
    }
    if (kind == PacketKind::BIP && !block) continue;
    if (block && kind == PacketKind::TNT_8) continue;  // would read as a BIP, or close the block
    if (kind == PacketKind::BBP && !mix.blocks) continue;
    Packet packet = random.make(kind, items_4);
    if (kind == PacketKind::PAD) packet.payload = 1 + random.bits(8);
    if (encode(packet, bytes, items_4) != base::Status::OK) continue;
    if (kind == PacketKind::BBP) {
      block = true;
      items_4 = packet.payload2 != 0;
    } else if (block && kind != PacketKind::BIP) {
      bytes.push_back(0x02);
      bytes.push_back(0x33);
      block = items_4 = false;
    }
  }
  return bytes;
}

// Bytes of any value, of small ones, or of opcodes only, with PSBs in between.
inline Buffer random_bytes(std::uint64_t seed, std::size_t size) {
  std::mt19937_64 random(seed);
  constexpr std::uint8_t kOpcodes[] = {0x00, 0x02, 0x0d, 0x2d, 0x4d, 0x6d, 0x71, 0x31, 0x21,
                                       0x61, 0x1d, 0x7d, 0x19, 0x59, 0x99, 0x03, 0x07, 0xf7,
                                       0xff, 0x82, 0x23, 0xa3, 0x43, 0x73, 0x06, 0x80, 0xf3,
                                       0x63, 0x33, 0x12, 0x32, 0xad, 0xed, 0xcd, 0x8d, 0xd9};
  Buffer bytes;
  while (bytes.size() < size) {
    if (random() % 64 == 0) bytes = bytes + psb();
    const auto byte = static_cast<std::uint8_t>(random());
    const bool opcode = seed % 3 != 0 && random() % 4 != 0;
    bytes.push_back(opcode ? kOpcodes[random() % sizeof kOpcodes] : byte);
  }
  return bytes;
}

// A stream with some bytes changed.
inline Buffer damaged(Buffer bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < 5 && !bytes.empty(); ++i) {
    bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
  }
  return bytes;
}

// All streams of the corpus (other people's traces), or none where it is absent.
inline std::vector<std::pair<std::string, Buffer>> corpus_streams() {
  const std::string corpus = ptkit::test::corpus();
  std::vector<std::pair<std::string, Buffer>> streams;
  if (corpus.empty()) return streams;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus)) {
    const auto& path = entry.path();
    if (path.filename() != "trace" && path.extension() != ".pt" && path.extension() != ".trace") continue;
    std::ifstream file(path, std::ios::binary);
    streams.emplace_back(path.string(), Buffer(std::istreambuf_iterator<char>(file), {}));
  }
  return streams;
}

}  // namespace ptkit::packet::test
