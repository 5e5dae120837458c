// Uses the installed libraries as another project does: decodes one TIP.PGE and prints its IP, plans how such
// a trace is started, and writes a register of the trace unit's model.
#include <common/pt_sequence.h>
#include <packet/decoder.h>
#include <ptmodel/trace_unit.h>
#include <trace_unit/msr/program.h>

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
  const auto steps = ptkit::trace_unit::msr::program(ptkit::trace_unit::msr::Sequence::START, {});
  if (steps.empty() || steps.back().address != PT_MSR_RTIT_CTL) return 1;
  ptkit::ptmodel::Registers registers({});
  const std::uint64_t reserved = std::uint64_t{1} << 63;
  return registers.write(PT_MSR_RTIT_CTL, reserved) == ptkit::ptmodel::MsrResult::FAULT ? 0 : 1;
}
