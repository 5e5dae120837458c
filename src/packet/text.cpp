#include "packet/text.h"

#include <cstring>
#include <initializer_list>
#include <iterator>

#include "base/digits.h"

namespace ptkit::packet {
namespace {

using Text = ShortText;

// The non-empty words, separated by commas.
Text list_of(std::initializer_list<std::string_view> words) {
  Text text;
  for (const std::string_view word : words) {
    if (word.empty()) continue;
    if (text.size() != 0) text.add(", ");
    text.add(word);
  }
  return text;
}

Text ip_payload(const Packet& packet) {
  constexpr unsigned kDigits[8] = {0, 4, 8, 12, 12, 16, 16, 16};  // of the IPBytes field
  const unsigned digits = kDigits[packet.payload2 & 7];
  if (packet.payload2 == 3) return Text("3: ").hex(base::sign_extend(packet.payload, 48), 16);
  Text text = Text().hex(packet.payload2).add(": ").add(std::string_view("????????????????", 16 - digits));
  if (digits != 0) text.hex(packet.payload, digits);
  return text;
}

// From the oldest branch on: '!' taken, '.' not taken.
Text tnt_payload(const Packet& packet) {
  return Text().bits(packet.payload, static_cast<std::size_t>(packet.payload2 < 64 ? packet.payload2 : 64),
                     '.', '!');
}

std::string_view wake_reason(std::uint64_t bits) {
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

std::string_view cfe_name(std::uint64_t type) {
  constexpr std::string_view kNames[] = {"unknown", "intr",    "iret",   "smi",         "rsm",      "sipi",
                                         "init",    "vmentry", "vmexit", "vmexit_intr", "shutdown", "unknown",
                                         "uintr",   "uiret",   "swintr", "syscall"};
  return type < std::size(kNames) ? kNames[type] : "unknown";
}

std::string_view evd_name(std::uint64_t type) {
  constexpr std::string_view kNames[] = {"cr2", "vmxq", "vmxr"};
  return type < std::size(kNames) ? kNames[type] : "unknown";
}

Text cfe_payload(const Packet& packet, std::string_view ip) {
  const std::string_view name = cfe_name(packet.payload);
  Text text = Text().decimal(packet.payload);
  if (name == "sipi") {
    text.add(": ").hex(packet.payload2);
  } else if (name == "intr" || name == "vmexit_intr" || name == "uintr" || name == "swintr") {
    text.add(": ").decimal(packet.payload2);
  }
  return list_of({text, ip});
}

}  // namespace

DumpText dump_text(const Packet& packet) {
  const std::string_view ip = (packet.flags & Packet::IP_BIT) != 0 ? "ip" : "";
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
      return {"pip", list_of({Text().hex(one), (packet.flags & Packet::NR) != 0 ? "nr" : ""}),
              Text("cr3 ").hex(one, 16)};
    case PacketKind::VMCS:
      return {"vmcs", Text().hex(one), Text("vmcs ").hex(one, 16)};
    case PacketKind::MODE_EXEC:
      return {
          "mode.exec",
          list_of({(two & 2) != 0 ? "cs.d" : "", (two & 1) != 0 ? "cs.l" : "", (two & 4) != 0 ? "if" : ""}),
          ""};
    case PacketKind::MODE_TSX:
      return {"mode.tsx", list_of({(one & 1) != 0 ? "intx" : "", (one & 2) != 0 ? "abrt" : ""}), ""};
    case PacketKind::TSC:
      return {"tsc", Text().hex(one), ""};
    case PacketKind::MTC:
      return {"mtc", Text().hex(one), ""};
    case PacketKind::TMA:
      return {"tma", Text().hex(one).add(", ").hex(two), ""};
    case PacketKind::CYC:
      return {"cyc", Text().hex(one), ""};
    case PacketKind::CBR:
      return {"cbr", Text().hex(one), ""};
    case PacketKind::OVF:
      return {"ovf", "", ""};
    case PacketKind::TRACE_STOP:
      return {"stop", "", ""};
    case PacketKind::MNT:
      return {"mnt", Text().hex(one), ""};
    case PacketKind::PTW:
      return {"ptw", list_of({Text().hex(two).add(": ").hex(one), ip}), ""};
    case PacketKind::EXSTOP:
      return {"exstop", ip, ""};
    case PacketKind::MWAIT:
      return {"mwait", Text().hex(one, 8).add(", ").hex(two, 8), ""};
    case PacketKind::PWRE:
      return {"pwre",
              list_of({Text("c").decimal(c_state(one >> 4)).add(".").decimal(c_state(one)),
                       (packet.flags & Packet::HW) != 0 ? "hw" : ""}),
              ""};
    case PacketKind::PWRX:
      return {"pwrx",
              Text(wake_reason(two)).add(": c").decimal(c_state(one >> 4)).add(", c").decimal(c_state(one)),
              ""};
    // libipt has no block packets; the format of these lines is ours.
    case PacketKind::BBP:
      return {"bbp", Text().hex(one).add(two != 0 ? ", 4" : ", 8"), ""};
    case PacketKind::BIP:
      return {"bip", Text().hex(one).add(": ").hex(two), ""};
    case PacketKind::BEP:
      return {"bep", ip, ""};
    case PacketKind::CFE:
      return {"cfe", cfe_payload(packet, ip), Text("type ").add(cfe_name(one))};
    case PacketKind::EVD:
      return {"evd", Text().decimal(one).add(": ").hex(two), Text("type ").add(evd_name(one))};
    case PacketKind::TRIG:
      return {"trig",
              list_of({Text().hex(one, 2), ip, (packet.flags & Packet::MULT) != 0 ? "mult" : "",
                       (packet.flags & Packet::ICNT) != 0 ? Text("icnt: ").decimal(two) : Text()}),
              ""};
    case PacketKind::INVALID:
      return {"<invalid>", "", ""};
  }
  return {"?", "", ""};
}

}  // namespace ptkit::packet
