// Prints packets as libipt's ptdump does: libipt's packet decoder, one printf for each line.
#include <cinttypes>
#include <cstdio>
#include <string>

#include "common/library.h"
#include "formats/registry.h"

namespace ptkit::bench {
namespace {

std::string ip_text(const pt_packet_ip& packet) {
  char text[40];
  switch (packet.ipc) {
    case pt_ipc_suppressed:
      return "0: ????????????????";
    case pt_ipc_update_16:
      std::snprintf(text, sizeof text, "1: ????????????%04" PRIx64, packet.ip);
      return text;
    case pt_ipc_update_32:
      std::snprintf(text, sizeof text, "2: ????????%08" PRIx64, packet.ip);
      return text;
    case pt_ipc_update_48:
      std::snprintf(text, sizeof text, "4: ????%012" PRIx64, packet.ip);
      return text;
    default:
      std::snprintf(text, sizeof text, "%x: %016" PRIx64, static_cast<unsigned>(packet.ipc), packet.ip);
      return text;
  }
}

std::string tnt_text(const pt_packet_tnt& packet) {
  std::string text;
  for (int bit = packet.bit_size - 1; bit >= 0; --bit) text += (packet.payload >> bit & 1) != 0 ? '!' : '.';
  return text;
}

std::string hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%" PRIx64, value);
  return text;
}

std::string hex16(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

void print(std::uint64_t offset, const pt_packet& packet) {
  const auto line = [offset](const char* name, const std::string& payload = {},
                             const std::string& detail = {}) {
    std::printf("%016" PRIx64 "  %-10s %-24s %s\n", offset, name, payload.c_str(), detail.c_str());
  };
  switch (packet.type) {
    case ppt_psb:
      return line("psb");
    case ppt_psbend:
      return line("psbend");
    case ppt_ovf:
      return line("ovf");
    case ppt_fup:
      return line("fup", ip_text(packet.payload.ip));
    case ppt_tip:
      return line("tip", ip_text(packet.payload.ip));
    case ppt_tip_pge:
      return line("tip.pge", ip_text(packet.payload.ip));
    case ppt_tip_pgd:
      return line("tip.pgd", ip_text(packet.payload.ip));
    case ppt_tnt_8:
      return line("tnt.8", tnt_text(packet.payload.tnt));
    case ppt_tnt_64:
      return line("tnt.64", tnt_text(packet.payload.tnt));
    case ppt_mode: {
      const pt_packet_mode& mode = packet.payload.mode;
      if (mode.leaf == pt_mol_exec) {
        return line("mode.exec", mode.bits.exec.csd != 0 ? "cs.d" : mode.bits.exec.csl != 0 ? "cs.l" : "");
      }
      return line("mode.tsx", mode.bits.tsx.intx != 0 ? "intx" : mode.bits.tsx.abrt != 0 ? "abrt" : "");
    }
    case ppt_pip:
      return line("pip", hex(packet.payload.pip.cr3) + (packet.payload.pip.nr != 0 ? ", nr" : ""),
                  "cr3 " + hex16(packet.payload.pip.cr3));
    case ppt_vmcs:
      return line("vmcs", hex(packet.payload.vmcs.base), "vmcs " + hex16(packet.payload.vmcs.base));
    case ppt_tsc:
      return line("tsc", hex(packet.payload.tsc.tsc));
    case ppt_tma:
      return line("tma", hex(packet.payload.tma.ctc) + ", " + hex(packet.payload.tma.fc));
    case ppt_mtc:
      return line("mtc", hex(packet.payload.mtc.ctc));
    case ppt_cyc:
      return line("cyc", hex(packet.payload.cyc.value));
    case ppt_cbr:
      return line("cbr", hex(packet.payload.cbr.ratio));
    default:
      return line("other");
  }
}

int run(const char* path) {
  auto opened = formats::open(path, {});
  if (!opened.ok()) return 2;
  const pt_config config = library_config(opened.value());
  pt_packet_decoder* const decoder = pt_pkt_alloc_decoder(&config);
  int status = pt_pkt_sync_forward(decoder);
  while (status >= 0) {
    std::uint64_t offset = 0;
    pt_packet packet;
    static_cast<void>(pt_pkt_get_offset(decoder, &offset));
    status = pt_pkt_next(decoder, &packet, sizeof packet);
    if (status < 0 && status != -pte_eos) {
      std::printf("[%" PRIx64 ": %s]\n", offset, pt_errstr(pt_errcode(status)));
      status = pt_pkt_sync_forward(decoder);
    } else if (status >= 0 && packet.type != ppt_pad) {
      print(offset, packet);
    }
  }
  pt_pkt_free_decoder(decoder);
  return 0;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) { return argc == 2 ? ptkit::bench::run(argv[1]) : 2; }
