#include "packet/text.h"

#include <cinttypes>
#include <cstdio>
#include <initializer_list>
#include <iterator>

namespace ptkit::packet {
namespace {

template <typename... Values>
std::string format(const char* form, Values... values) {
  char text[160];
  const int length = std::snprintf(text, sizeof text, form, values...);
  return std::string(text, static_cast<std::size_t>(length));
}

// The non-empty words, separated by commas.
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

// C-states have the encoding of MWAIT hints: one less than their number, modulo 16.
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

}  // namespace

DumpText dump_text(const Packet& packet) {
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
      return {"tip", ip_payload(packet), ""};
    case PacketKind::TIP_PGE:
      return {"tip.pge", ip_payload(packet), ""};
    case PacketKind::TIP_PGD:
      return {"tip.pgd", ip_payload(packet), ""};
    case PacketKind::FUP:
      return {"fup", ip_payload(packet), ""};
    case PacketKind::PIP:
      return {"pip", list_of({format("%" PRIx64, one), (packet.flags & Packet::NR) != 0 ? "nr" : ""}),
              format("cr3 %016" PRIx64, one)};
    case PacketKind::VMCS:
      return {"vmcs", format("%" PRIx64, one), format("vmcs %016" PRIx64, one)};
    case PacketKind::MODE_EXEC:
      return {
          "mode.exec",
          list_of({(two & 2) != 0 ? "cs.d" : "", (two & 1) != 0 ? "cs.l" : "", (two & 4) != 0 ? "if" : ""}),
          ""};
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
    // libipt has no block packets; the format of these lines is ours.
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

}  // namespace ptkit::packet
