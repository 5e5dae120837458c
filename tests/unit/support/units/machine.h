// A machine around a TraceUnit: physical memory, interrupts that are counted, registers by name.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ptmodel/trace_unit.h"
#include "traced_unit.h"

namespace ptkit::ptmodel::test {

using packet::Packet;
using packet::PacketKind;
using trace_unit::generator::GeneratorConfig;
using trace_unit::generator::TipRet;
using trace_unit::generator::test::after_start;
using trace_unit::generator::test::decode;

class FakePlatform : public Platform {
 public:
  static constexpr std::uint64_t kPage = 4096;

  std::uint64_t read_physical(std::uint64_t address) override {
    std::uint64_t value = 0;
    std::memcpy(&value, page(address).data() + address % kPage, sizeof value);
    return value;
  }
  void write_physical(std::uint64_t address, base::Bytes bytes) override {
    writes.emplace_back(address, bytes.size());
    stream.insert(stream.end(), bytes.begin(), bytes.end());
    for (const std::uint8_t byte : bytes) {
      page(address)[address % kPage] = byte;
      ++address;
    }
  }
  void topa_pmi() override { ++interrupts; }
  void write_transport(base::Bytes bytes) override {
    transport.insert(transport.end(), bytes.begin(), bytes.end());
  }

  void put_entry(std::uint64_t address, std::uint64_t entry) {
    std::memcpy(page(address).data() + address % kPage, &entry, sizeof entry);
  }
  std::vector<std::uint8_t> read(std::uint64_t address, std::uint64_t size) {
    std::vector<std::uint8_t> out;
    for (std::uint64_t at = address; at < address + size; ++at) out.push_back(page(at)[at % kPage]);
    return out;
  }

  unsigned interrupts = 0;
  std::vector<std::uint8_t> transport;
  std::vector<std::uint8_t> stream;  // all that was written to memory, in order
  std::vector<std::pair<std::uint64_t, std::size_t>> writes;

 private:
  std::vector<std::uint8_t>& page(std::uint64_t address) {
    std::vector<std::uint8_t>& found = pages_[address / kPage];
    if (found.empty()) found.resize(kPage);
    return found;
  }
  std::map<std::uint64_t, std::vector<std::uint8_t>> pages_;
};

constexpr std::uint64_t kOs = bit(PT_CTL_OS);
constexpr std::uint64_t kUser = bit(PT_CTL_USER);
constexpr std::uint64_t kBranches = bit(PT_CTL_BRANCH_EN);
constexpr std::uint64_t kTopa = bit(PT_CTL_TOPA);
constexpr std::uint64_t kTraceEn = bit(PT_CTL_TRACE_EN);

// Bits of a ToPA entry.
constexpr std::uint64_t kEnd = bit(PT_TOPA_END);
constexpr std::uint64_t kInt = bit(PT_TOPA_INT);
constexpr std::uint64_t kStop = bit(PT_TOPA_STOP);
constexpr std::uint64_t topa_size(std::uint64_t n) { return n << PT_TOPA_SIZE_SHIFT; }

// A unit that writes to a single range of 1 MiB, unless told otherwise.
class Machine {
 public:
  static constexpr std::uint64_t kBuffer = 0x100000;
  static constexpr std::uint64_t kBufferSize = 0x100000;

  explicit Machine(const Capabilities& capabilities = {}, const GeneratorConfig& config = small_buffer())
      : unit(capabilities, config, platform) {
    write(PT_MSR_RTIT_OUTPUT_BASE, kBuffer);
    write(PT_MSR_RTIT_OUTPUT_MASK_PTRS, kBufferSize - 1);
    unit.set_time(1000, 1000);
  }

  static GeneratorConfig small_buffer() {
    GeneratorConfig config;
    config.chunk_bytes = 0;
    return config;
  }

  void write(std::uint32_t msr, std::uint64_t value, InsnAddress at = {}) {
    EXPECT_EQ(unit.write_msr(msr, value, at), MsrResult::OK) << std::hex << msr << " = " << value;
  }
  std::uint64_t read(std::uint32_t msr) {
    std::uint64_t value = 0;
    EXPECT_EQ(unit.read_msr(msr, value), MsrResult::OK) << std::hex << msr;
    return value;
  }
  bool status(unsigned number) { return (read(PT_MSR_RTIT_STATUS) >> number & 1) != 0; }
  std::uint64_t offset() { return read(PT_MSR_RTIT_OUTPUT_MASK_PTRS) >> PT_OUTPUT_OFFSET_SHIFT; }

  void start(std::uint64_t ctl, std::uint64_t next_ip) {
    write(PT_MSR_RTIT_CTL, ctl | kTraceEn, {next_ip - 2, next_ip});
  }
  void end(std::uint64_t ip) { write(PT_MSR_RTIT_CTL, read(PT_MSR_RTIT_CTL) & ~kTraceEn, {ip, ip + 2}); }
  // What the single range holds, as long as it did not wrap.
  std::vector<std::uint8_t> bytes() { return platform.read(kBuffer, offset()); }
  // Packets behind the first PSB+, one a line; timing packets are left out.
  std::string packets() {
    std::vector<Packet> kept;
    for (const Packet& packet : decode(bytes())) {
      const bool timing = packet.kind == PacketKind::CBR || packet.kind == PacketKind::TSC;
      if (!timing) kept.push_back(packet);
    }
    return after_start(kept);
  }

  FakePlatform platform;
  TraceUnit unit;
};

}  // namespace ptkit::ptmodel::test
