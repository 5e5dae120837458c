// The fast path emits the rows of the simple decoder: mostly plausible packets over a small program.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "packet/encoder.h"
#include "unit/flow/tables.h"

namespace {

using namespace ptkit;
using packet::PacketKind;

constexpr std::uint64_t kBase = 0x1000;

// Conditionals, calls that nest, returns, indirect and far branches, MOV CR3, and code that ends.
constexpr std::uint8_t kCode[] = {
    0xff, 0xc9,                    // 00: dec ecx
    0x75, 0xfc,                    // 02: jnz 00
    0xe8, 0x07, 0x00, 0x00, 0x00,  // 04: call 10
    0x74, 0xf5,                    // 09: jz 00
    0xff, 0xe0,                    // 0b: jmp rax
    0x90, 0x90, 0x90,              // 0d: nops
    0x74, 0x09,                    // 10: jz 1b
    0xe8, 0xf9, 0xff, 0xff, 0xff,  // 12: call 10
    0x75, 0x01,                    // 17: jnz 1a
    0xc3,                          // 19: ret
    0x90,                          // 1a: nop
    0xff, 0xd0,                    // 1b: call rax
    0xc3,                          // 1d: ret
    0x0f, 0x05,                    // 1e: syscall
    0x0f, 0x22, 0xd8,              // 20: mov cr3, rax
    0xeb, 0xfe,                    // 23: jmp 23
    0x48, 0xcf,                    // 25: iretq
    0xe8, 0x00, 0x00, 0x00, 0x00,  // 27: call 2c
    0x74, 0x02,                    // 2c: jz 30
    0x90, 0x90,                    // 2e: nops, and code ends
};

// Takes bytes off the input.
class Input {
 public:
  explicit Input(base::Bytes bytes) : bytes_(bytes) {}
  [[nodiscard]] bool empty() const { return at_ >= bytes_.size(); }
  std::uint8_t byte() { return empty() ? std::uint8_t{0} : bytes_[at_++]; }

 private:
  base::Bytes bytes_;
  std::size_t at_ = 0;
};

class Packets {
 public:
  void add(PacketKind kind, std::uint64_t payload = 0, std::uint64_t payload2 = 0) {
    packet::Packet packet;
    packet.kind = kind;
    packet.payload = payload;
    packet.payload2 = payload2;
    static_cast<void>(packet::encode(packet, bytes));
  }
  void ip(PacketKind kind, std::uint64_t ip) { add(kind, ip & 0xffff, 1); }
  void header(Input& in) {
    add(PacketKind::PSB);
    add(PacketKind::MODE_EXEC, 64, 1);
    add(PacketKind::FUP, address(in), 3);
    add(PacketKind::PSBEND);
  }
  // Mostly an instruction of the program.
  static std::uint64_t address(Input& in) { return kBase + in.byte() % 64U; }

  std::vector<std::uint8_t> bytes;
};

void add_rare(Packets& out, std::uint8_t choice, Input& in) {
  switch (choice % 16) {
    case 0:
      return out.header(in);
    case 1:
      return out.add(PacketKind::OVF);
    case 2:
      return out.ip(PacketKind::FUP, Packets::address(in));
    case 3:
      return out.add(PacketKind::MODE_TSX, in.byte() % 4U);
    case 4:
      return out.add(PacketKind::MODE_EXEC, 32, 2);
    case 5:
      return out.add(PacketKind::PIP, (in.byte() % 4U) << 12U);
    case 6:
      return out.add(PacketKind::CBR, 1 + in.byte() % 60U);
    case 7:
      return out.add(PacketKind::TRACE_STOP);
    case 8:
      return out.add(PacketKind::TNT_64, in.byte() * 0x0101010101ULL & 0xfffffffff, 36);
    case 9:
      return out.add(PacketKind::TSC, 1000 + out.bytes.size() * 20);
    case 10:
      return out.add(PacketKind::MTC, in.byte());
    case 11:
      return out.add(PacketKind::TMA, in.byte(), in.byte());
    case 12:
      return out.bytes.push_back(in.byte());
    case 13:
      return out.add(PacketKind::TIP, in.byte() * 0x0102030405060708ULL, 6);
    case 14:
      return out.add(PacketKind::PSBEND);
    default:
      return out.add(PacketKind::TIP_PGD);
  }
}

std::vector<std::uint8_t> packets_of(Input& in) {
  Packets out;
  out.header(in);
  while (!in.empty()) {
    const std::uint8_t choice = in.byte();
    if (choice >= 0x60) {  // TNT bits: one to six
      const unsigned count = 1 + choice % 6U;
      out.add(PacketKind::TNT_8, in.byte() & ((1U << count) - 1), count);
    } else if (choice >= 0x40) {
      out.ip(PacketKind::TIP, Packets::address(in));
    } else if (choice >= 0x30) {
      out.add(PacketKind::CYC, in.byte() * std::uint64_t{choice});
    } else if (choice >= 0x28) {
      out.ip(PacketKind::TIP_PGE, Packets::address(in));
    } else if (choice >= 0x20) {
      out.ip(PacketKind::TIP_PGD, Packets::address(in));
    } else if (choice >= 0x18) {
      out.bytes.insert(out.bytes.end(), choice % 8U + 1, std::uint8_t{0});
    } else {
      add_rare(out, choice, in);
    }
  }
  out.bytes.insert(out.bytes.end(), 20, std::uint8_t{0});  // the fast path ends before the last bytes
  return std::move(out.bytes);
}

std::shared_ptr<trace::TraceBundle> bundle_of(std::uint8_t choices, Input& in) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  trace::CodeRegion region;
  region.address = kBase;
  region.bytes = trace::TraceBuffer::from_vector({std::begin(kCode), std::end(kCode)});
  region.size = sizeof kCode;
  bundle->code.push_back(region);
  if ((choices & 1U) != 0) {
    bundle->configuration.rtit_ctl_known = true;
    bundle->configuration.rtit_ctl = std::uint64_t{1} << 11U;  // DisRETC
  }
  if ((choices & 2U) != 0) {
    const std::uint64_t first = Packets::address(in);
    bundle->configuration.ranges[0] = {trace::RangeKind::FILTER, first, first + in.byte() % 64U};
  }
  trace::Stream stream;
  stream.data = trace::TraceBuffer::from_vector(packets_of(in));
  if ((choices & 4U) != 0) {
    stream.losses.push_back({stream.data.size() / 2, base::Status::RING_WRAPPED, 0});
  }
  bundle->streams.push_back(stream);
  return bundle;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  Input in({data, size});
  const std::uint8_t choices = in.byte();
  const std::uint8_t which = in.byte();
  flow::decoded::Reading reading;
  reading.table = flow::decoded::kFlowTables[which % flow::decoded::kFlowTables.size()];
  if ((choices & 8U) != 0) reading.part = 1 + which % 32U;
  reading.time = (choices & 16U) != 0;
  flow::FlowOptions options;
  if ((choices & 32U) != 0) options.resync = flow::Resync::PSB;
  if ((choices & 64U) != 0) options.errata = packet::errata_for({});
  const auto bundle = bundle_of(choices, in);
  const code::image::Image image(bundle);
  flow::CodeCachePool pool(image);
  options.fast = false;
  const auto simple = flow::decoded::read(bundle, image, options, nullptr, reading);
  options.fast = true;
  for (int times = 0; times < 2; ++times) {  // the second time with the path cache of the first
    const auto fast = flow::decoded::read(bundle, image, options, &pool, reading);
    const std::string text = difference(fast, simple);
    if (text.empty()) continue;
    std::fprintf(stderr, "table %d: %s\n", static_cast<int>(reading.table), text.c_str());
    std::abort();
  }
  return 0;
}
