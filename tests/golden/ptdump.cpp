// Prints packets as libipt's ptdump does, so that its expected outputs can be compared with.
#include <cinttypes>
#include <cstdio>

#include "case.h"
#include "packet/decoder.h"

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

// One output line: opcode, payload, and what ptdump calls tracking information.
struct Line {
  std::string opcode;
  std::string payload;
  std::string tracking;
};

// The words that are not empty, with commas between.
std::string list_of(std::initializer_list<std::string> words) {
  std::string text;
  for (const std::string& word : words) {
    if (!word.empty()) text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

std::string ip_payload(const Packet& packet) {
  constexpr int kDigits[8] = {0, 4, 8, 12, 12, 16, 16, 16};  // of the IPBytes field
  const int digits = kDigits[packet.payload2 & 7];
  if (packet.payload2 == 3) return format("3: %016" PRIx64, base::sign_extend(packet.payload, 48));
  std::string text =
      format("%" PRIx64 ": ", packet.payload2) + std::string(static_cast<std::size_t>(16 - digits), '?');
  if (digits != 0) text += format("%0*" PRIx64, digits, packet.payload);
  return text;
}

std::string tnt_payload(const Packet& packet) {
  std::string text;
  for (std::uint64_t bit = 0; bit < packet.payload2; ++bit)
    text += (packet.payload >> bit & 1) != 0 ? '!' : '.';
  return text;
}

std::string exec_mode_name(std::uint64_t width) {
  return width == 0 ? "unknown" : format("%" PRIu64 "-bit", width);
}

std::string wake_reason(std::uint64_t bits) {
  switch (bits) {
    case 1:
      return "int";
    case 4:
      return "st";
    case 8:
      return "hw";
    default:
      return "bad";
  }
}

// C-states are encoded as in MWAIT hints: one less than their number, modulo 16.
unsigned c_state(std::uint64_t nibble) { return static_cast<unsigned>((nibble & 0xf) + 1) & 0xf; }

const char* cfe_name(std::uint64_t type) {
  constexpr const char* kNames[] = {"unknown", "intr",    "iret",   "smi",         "rsm",      "sipi",
                                    "init",    "vmentry", "vmexit", "vmexit_intr", "shutdown", "unknown",
                                    "uintr",   "uiret",   "swintr", "syscall"};
  return type < std::size(kNames) ? kNames[type] : "unknown";
}

const char* evd_name(std::uint64_t type) {
  constexpr const char* kNames[] = {"cr2", "vmxq", "vmxr"};
  return type < std::size(kNames) ? kNames[type] : "unknown";
}

std::string cfe_payload(const Packet& packet, const std::string& ip) {
  const std::string name = cfe_name(packet.payload);
  std::string text = format("%" PRIu64, packet.payload);
  if (name == "sipi") {
    text += format(": %" PRIx64, packet.payload2);
  } else if (name == "intr" || name == "vmexit_intr" || name == "uintr" || name == "swintr") {
    text += format(": %" PRIu64, packet.payload2);
  }
  return list_of({text, ip});
}

// What ptdump knows of the last IP: it does not take a PSB for a reset.
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
  // Prints packets up to an error (true) or the end (false). As in ptdump, a packet that is cut off ends
  // silently.
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
    const Line line = line_of(packet);
    if ((timing && options_.no_timing) || (cyc && options_.no_cyc)) return;
    print_line(packet.offset, packet.size, line);
  }

  void print_line(std::uint64_t offset, std::size_t size, const Line& line) {
    if (options_.quiet) return;
    std::string text;
    if (options_.offset) text += format("%016" PRIx64 "  ", offset);
    if (options_.raw) {
      for (const std::uint8_t byte : decoder_.stream().subspan(static_cast<std::size_t>(offset), size))
        text += format("%02x", byte);
      text += "  ";
    }
    text += format("%-10s %-24s", line.opcode.c_str(), line.payload.c_str());
    if (!line.tracking.empty()) text += " " + line.tracking;
    while (text.back() == ' ') text.pop_back();
    out_ += text + "\n";
  }

  Line ip_line(const char* opcode, const Packet& packet) {
    Line line{opcode, ip_payload(packet), ""};
    if (!options_.last_ip) return line;
    last_ip_.update(packet);
    line.tracking = "ip ";
    if (!last_ip_.known) {
      line.tracking += "<unavailable>";
      out_ += format("[%" PRIx64 ": error tracking last-ip: no ip]\n", packet.offset);
    } else {
      line.tracking += packet.payload2 == 0 ? "<suppressed>" : format("%016" PRIx64, last_ip_.ip);
    }
    return line;
  }

  Line mode_exec_line(const Packet& packet) const {
    const std::uint64_t bits = packet.payload2;
    Line line{
        "mode.exec",
        list_of({(bits & 2) != 0 ? "cs.d" : "", (bits & 1) != 0 ? "cs.l" : "", (bits & 4) != 0 ? "if" : ""}),
        ""};
    if (options_.exec_mode) line.tracking = "em " + exec_mode_name(packet.payload);
    return line;
  }

  Line line_of(const Packet& packet);

  Options options_;
  packet::PacketDecoder decoder_;
  LastIp last_ip_;
  std::string& out_;
};

Line Dump::line_of(const Packet& packet) {
  const std::string ip = (packet.flags & Packet::IP_BIT) != 0 ? "ip" : "";
  const std::uint64_t one = packet.payload;
  const std::uint64_t two = packet.payload2;
  switch (packet.kind) {
    case PacketKind::PAD:
      return {"pad", "", ""};
    case PacketKind::PSB:
      return {"psb", "", ""};
    case PacketKind::PSBEND:
      return {"psbend", "", ""};
    case PacketKind::TNT_8:
      return {"tnt.8", tnt_payload(packet), ""};
    case PacketKind::TNT_64:
      return {"tnt.64", tnt_payload(packet), ""};
    case PacketKind::TIP:
      return ip_line("tip", packet);
    case PacketKind::TIP_PGE:
      return ip_line("tip.pge", packet);
    case PacketKind::TIP_PGD:
      return ip_line("tip.pgd", packet);
    case PacketKind::FUP:
      return ip_line("fup", packet);
    case PacketKind::PIP:
      return {"pip", list_of({format("%" PRIx64, one), (packet.flags & Packet::NR) != 0 ? "nr" : ""}),
              format("cr3 %016" PRIx64, one)};
    case PacketKind::VMCS:
      return {"vmcs", format("%" PRIx64, one), format("vmcs %016" PRIx64, one)};
    case PacketKind::MODE_EXEC:
      return mode_exec_line(packet);
    case PacketKind::MODE_TSX:
      return {"mode.tsx", list_of({(one & 1) != 0 ? "intx" : "", (one & 2) != 0 ? "abrt" : ""}), ""};
    case PacketKind::TSC:
      return {"tsc", format("%" PRIx64, one), ""};
    case PacketKind::MTC:
      return {"mtc", format("%" PRIx64, one), ""};
    case PacketKind::TMA:
      return {"tma", format("%" PRIx64 ", %" PRIx64, one, two), ""};
    case PacketKind::CYC:
      return {"cyc", format("%" PRIx64, one), ""};
    case PacketKind::CBR:
      return {"cbr", format("%" PRIx64, one), ""};
    case PacketKind::OVF:
      return {"ovf", "", ""};
    case PacketKind::TRACE_STOP:
      return {"stop", "", ""};
    case PacketKind::MNT:
      return {"mnt", format("%" PRIx64, one), ""};
    case PacketKind::PTW:
      return {"ptw", list_of({format("%" PRIx64 ": %" PRIx64, two, one), ip}), ""};
    case PacketKind::EXSTOP:
      return {"exstop", ip, ""};
    case PacketKind::MWAIT:
      return {"mwait", format("%08" PRIx64 ", %08" PRIx64, one, two), ""};
    case PacketKind::PWRE:
      return {"pwre",
              list_of({format("c%u.%u", c_state(one >> 4), c_state(one)),
                       (packet.flags & Packet::HW) != 0 ? "hw" : ""}),
              ""};
    case PacketKind::PWRX:
      return {"pwrx", wake_reason(two) + format(": c%u, c%u", c_state(one >> 4), c_state(one)), ""};
    // libipt has no block packets; these lines are our own.
    case PacketKind::BBP:
      return {"bbp", format("%" PRIx64 ", %s", one, two != 0 ? "4" : "8"), ""};
    case PacketKind::BIP:
      return {"bip", format("%" PRIx64 ": %" PRIx64, one, two), ""};
    case PacketKind::BEP:
      return {"bep", ip, ""};
    case PacketKind::CFE:
      return {"cfe", cfe_payload(packet, ip), std::string("type ") + cfe_name(one)};
    case PacketKind::EVD:
      return {"evd", format("%" PRIu64 ": %" PRIx64, one, two), std::string("type ") + evd_name(one)};
    case PacketKind::TRIG:
      return {"trig",
              list_of({format("%02" PRIx64, one), ip, (packet.flags & Packet::MULT) != 0 ? "mult" : "",
                       (packet.flags & Packet::ICNT) != 0 ? format("icnt: %" PRIu64, two) : ""}),
              ""};
    case PacketKind::INVALID:
      return {"<invalid>", "", ""};
  }
  return {"?", "", ""};
}

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
