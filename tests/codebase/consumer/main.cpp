// Uses the installed core as a program of somebody else would: decodes one TIP.PGE and prints its IP, and
// plans how such a trace is started.
#include <common/pt_sequence.h>
#include <packet/decoder.h>
#include <rtit/program.h>
#include <softpt/trace_unit.h>

#include <array>
#include <cinttypes>
#include <cstdio>

int main() {
  constexpr std::array<std::uint8_t, 9> kBytes{0x71, 0x10, 0x93, 0x38, 0x85, 0x06, 0xf8, 0x00, 0x00};
  ptkit::packet::PacketDecoder decoder({kBytes.data(), kBytes.size()});
  ptkit::packet::Packet packet;
  if (decoder.next(packet) != ptkit::base::Status::OK) return 1;
  std::printf("%016" PRIx64 "\n", packet.ip);
  if (pt_status_restarted(0) != 0) return 1;
  const auto steps = ptkit::rtit::program(ptkit::rtit::Sequence::START, {});
  return steps.empty() || steps.back().place != PT_MSR_RTIT_CTL ? 1 : 0;
}
