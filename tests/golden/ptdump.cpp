// Prints packets as libipt's ptdump does, so that its expected outputs can be compared with.
#include <cinttypes>
#include <cstdio>

#include "case.h"
#include "packet/decoder.h"
#include "packet/text.h"

namespace ptkit::golden {
namespace {

using base::Status;
using packet::Packet;
using packet::PacketKind;

struct Options {
  bool offset = true;
  bool raw = false;
  bool last_ip = false;
  bool exec_mode = false;
  bool no_pad = false;
  bool no_timing = false;
  bool no_cyc = false;
  bool no_sync = false;
  bool quiet = false;
};

Options options_of(const Case& test_case) {
  Options options;
  options.offset = !test_case.has_option("--no-offset");
  options.raw = test_case.has_option("--raw");
  options.last_ip = test_case.has_option("--lastip");
  options.exec_mode = test_case.has_option("--exec-mode");
  options.no_pad = test_case.has_option("--no-pad");
  options.no_timing = test_case.has_option("--no-timing");
  options.no_cyc = test_case.has_option("--no-cyc");
  options.no_sync = test_case.has_option("--no-sync");
  options.quiet = test_case.has_option("--quiet");
  return options;
}

template <typename... Values>
std::string format(const char* form, Values... values) {
  char text[160];
  const int length = std::snprintf(text, sizeof text, form, values...);
  return std::string(text, static_cast<std::size_t>(length));
}

std::string exec_mode_name(std::uint64_t width) {
  return width == 0 ? "unknown" : format("%" PRIu64 "-bit", width);
}

// The last IP as ptdump knows it: it does not take a PSB for a reset.
struct LastIp {
  std::uint64_t ip = 0;
  bool known = false;

  void update(const Packet& packet) {
    constexpr unsigned kBits[8] = {0, 16, 32, 64, 48, 64, 64, 64};
    const unsigned bits = kBits[packet.payload2 & 7];
    if (bits == 0) return;
    const std::uint64_t raw = packet.payload2 == 3 ? base::sign_extend(packet.payload, 48) : packet.payload;
    ip = bits == 64 ? raw : (ip >> bits << bits) | raw;
    known = true;
  }
};

class Dump {
 public:
  Dump(const Case& test_case, std::string& out)
      : options_(options_of(test_case)), decoder_(test_case.stream, {}, test_case.errata), out_(out) {}

  void run() {
    Status status = options_.no_sync ? Status::OK : decoder_.sync_forward();
    while (status == Status::OK) {
      last_ip_ = LastIp{};
      if (!packets()) return;
      status = decoder_.sync_forward();
    }
  }

 private:
  // Prints packets up to an error (true) or the end (false). As in ptdump, a truncated packet ends silently.
  bool packets() {
    for (;;) {
      Packet packet;
      switch (decoder_.next(packet)) {
        case Status::OK:
          print(packet);
          break;
        case Status::END_OF_STREAM:
        case Status::TRUNCATED_PACKET:
          return false;
        case Status::BAD_OPCODE:
          error(packet, "unknown opcode");
          return true;
        default:
          error(packet, "unknown packet");
          return true;
      }
    }
  }

  void error(const Packet& packet, const char* what) {
    out_ += format("[%" PRIx64 ": error decoding packet: %s]\n", packet.offset, what);
  }

  void print(const Packet& packet) {
    if (packet.kind == PacketKind::PAD) {  // one line per byte
      if (options_.no_pad) return;
      for (std::uint64_t byte = 0; byte < packet.payload; ++byte)
        print_line(packet.offset + byte, 1, {"pad", "", ""});
      return;
    }
    const bool cyc = packet.kind == PacketKind::CYC;
    const bool timing = cyc || packet.kind == PacketKind::TSC || packet.kind == PacketKind::TMA ||
                        packet.kind == PacketKind::MTC || packet.kind == PacketKind::CBR;
    packet::DumpText line = packet::dump_text(packet);
    const std::string more = tracking(packet);
    if (!more.empty()) line.detail = std::string_view(more);
    if ((timing && options_.no_timing) || (cyc && options_.no_cyc)) return;
    print_line(packet.offset, packet.size, line);
  }

  void print_line(std::uint64_t offset, std::size_t size, const packet::DumpText& line) {
    if (options_.quiet) return;
    std::string text;
    if (options_.offset) text += format("%016" PRIx64 "  ", offset);
    if (options_.raw) {
      for (const std::uint8_t byte : decoder_.stream().subspan(static_cast<std::size_t>(offset), size))
        text += format("%02x", byte);
      text += "  ";
    }
    text += format("%-10s %-24s", std::string(line.opcode).c_str(),
                   std::string(std::string_view(line.payload)).c_str());
    if (line.detail.size() != 0) text += " " + std::string(std::string_view(line.detail));
    while (text.back() == ' ') text.pop_back();
    out_ += text + "\n";
  }

  // Text that ptdump adds to some packets on request: the last IP, the execution mode.
  std::string tracking(const Packet& packet) {
    if (packet.kind == PacketKind::MODE_EXEC && options_.exec_mode)
      return "em " + exec_mode_name(packet.payload);
    const bool has_ip = packet.kind == PacketKind::TIP || packet.kind == PacketKind::TIP_PGE ||
                        packet.kind == PacketKind::TIP_PGD || packet.kind == PacketKind::FUP;
    if (!has_ip || !options_.last_ip) return "";
    last_ip_.update(packet);
    if (!last_ip_.known) {
      out_ += format("[%" PRIx64 ": error tracking last-ip: no ip]\n", packet.offset);
      return "ip <unavailable>";
    }
    return "ip " + (packet.payload2 == 0 ? "<suppressed>" : format("%016" PRIx64, last_ip_.ip));
  }

  Options options_;
  packet::PacketDecoder decoder_;
  LastIp last_ip_;
  std::string& out_;
};

}  // namespace

std::string run_ptdump(const Case& test_case) {
  std::string out;
  if (test_case.cpu_given && !packet::errata_known(test_case.configuration.cpu)) {
    out += "[0: failed to determine errata: unknown cpu]\n";
  }
  Dump(test_case, out).run();
  return out;
}

}  // namespace ptkit::golden
