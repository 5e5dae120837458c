// Small traces by hand: packets and code bytes as input, rows as output.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "collect.h"
#include "flow/decoder/decoder.h"
#include "packet/encoder.h"

namespace ptkit::flow {

using packet::PacketKind;

class Scene {
 public:
  static constexpr std::uint64_t kCode = 0x1000;

  explicit Scene(std::vector<std::uint8_t> code = {}) : bundle_(std::make_shared<trace::TraceBundle>()) {
    if (!code.empty()) put(kCode, std::move(code));
  }

  Scene& put(std::uint64_t address, std::vector<std::uint8_t> code, std::uint64_t from = trace::kTscMin,
             std::uint64_t to = trace::kTscMax, trace::SpaceId space = trace::kAnySpace) {
    trace::CodeRegion region;
    region.address = address;
    region.size = code.size();
    region.bytes = trace::TraceBuffer::from_vector(std::move(code));
    region.tsc_from = from;
    region.tsc_to = to;
    region.space = space;
    bundle_->code.push_back(region);
    return *this;
  }

  // --- Packets
  // -----------------------------------------------------------------------------------------------
  Scene& add(PacketKind kind, std::uint64_t payload = 0, std::uint64_t payload2 = 0, std::uint8_t flags = 0,
             bool items_4 = false) {
    packet::Packet packet;
    packet.kind = kind;
    packet.payload = payload;
    packet.payload2 = payload2;
    packet.flags = flags;
    last = bytes_.size();
    EXPECT_EQ(packet::encode(packet, bytes_, items_4), base::Status::OK);
    return *this;
  }
  Scene& psb() { return add(PacketKind::PSB); }
  Scene& psbend() { return add(PacketKind::PSBEND); }
  Scene& mode(unsigned bits, bool iflag = false) {
    const std::uint64_t cs = bits == 64 ? 1 : bits == 32 ? 2 : 0;
    return add(PacketKind::MODE_EXEC, bits, cs | (iflag ? 4U : 0U));
  }
  Scene& begin(std::uint64_t ip = kCode, unsigned bits = 64) { return psb().mode(bits).fup(ip).psbend(); }
  Scene& begin_off() { return psb().mode(64).psbend(); }
  Scene& tnt(const char* bits) {
    std::uint64_t payload = 0;
    unsigned count = 0;
    for (; bits[count] != 0; ++count) payload |= std::uint64_t{bits[count] == 't'} << count;
    return add(count > 6 ? PacketKind::TNT_64 : PacketKind::TNT_8, payload, count);
  }
  Scene& ip_packet(PacketKind kind, std::uint64_t ip) { return add(kind, ip & 0xffffffffffff, 3); }
  Scene& tip(std::uint64_t ip) { return ip_packet(PacketKind::TIP, ip); }
  Scene& pge(std::uint64_t ip) { return ip_packet(PacketKind::TIP_PGE, ip); }
  Scene& pgd(std::uint64_t ip) { return ip_packet(PacketKind::TIP_PGD, ip); }
  Scene& pgd() { return add(PacketKind::TIP_PGD, 0, 0); }
  Scene& fup(std::uint64_t ip) { return ip_packet(PacketKind::FUP, ip); }
  Scene& ovf() { return add(PacketKind::OVF); }
  Scene& raw(std::vector<std::uint8_t> bytes) {
    last = bytes_.size();
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return *this;
  }
  // Ends tracing where execution is: FUP and TIP.PGD.
  Scene& end(std::uint64_t ip) { return fup(ip).pgd(); }

  Collect decode() {
    trace::Stream stream = stream_;
    stream.data = trace::TraceBuffer::from_vector(bytes_);
    const code::image::Image image(bundle_);
    std::optional<time::TimeTrack> track;
    if (with_time) track.emplace(stream.data.bytes(), configuration.clock, options.errata);
    Collect rows;
    FlowDecoder decoder(stream, configuration, image, options, rows, track ? &*track : nullptr);
    while (decoder.run()) {
    }
    EXPECT_TRUE(rows.spans_in_order);
    EXPECT_EQ(decoder.position(), bytes_.size());
    return rows;
  }
  Collect decode(Resync resync) {
    options.resync = resync;
    return decode();
  }

  [[nodiscard]] trace::TraceBundle& bundle() { return *bundle_; }
  [[nodiscard]] trace::Stream& stream() { return stream_; }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

  trace::Configuration configuration;
  FlowOptions options;
  bool with_time = false;
  std::uint64_t last = 0;  // offset of the packet that was added last

 private:
  std::shared_ptr<trace::TraceBundle> bundle_;
  trace::Stream stream_;
  std::vector<std::uint8_t> bytes_;
};

// Addresses of instructions, for comparisons.
using Ips = std::vector<std::uint64_t>;

}  // namespace ptkit::flow
