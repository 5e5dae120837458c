// Every packet: the counts by kind and the last IP of packets/ptkit.cpp, for comparison with iptr.
#include <algorithm>
#include <array>

#include "common/contest.h"
#include "packet/scan.h"

namespace ptkit::bench {
namespace {

using packet::PacketKind;

// In the order of iptr.rs. MODE.TSX is counted as MODE.Exec: one kind for iptr.
constexpr std::array kKinds = {
    PacketKind::PSB,       PacketKind::PSBEND,  PacketKind::TNT_8, PacketKind::TNT_64, PacketKind::TIP,
    PacketKind::TIP_PGE,   PacketKind::TIP_PGD, PacketKind::FUP,   PacketKind::PIP,    PacketKind::VMCS,
    PacketKind::MODE_EXEC, PacketKind::TSC,     PacketKind::MTC,   PacketKind::TMA,    PacketKind::CYC,
    PacketKind::CBR,       PacketKind::OVF};

Outcome count(const trace::TraceBundle& bundle) {
  packet::PacketCounter counter(bundle.streams.front().data.bytes(), true);
  while (counter.run()) {
  }
  const packet::PacketCounts& counts = counter.counts();
  Outcome outcome;
  outcome.errors = counts.errors;
  Digest digest;
  std::uint64_t others = 0;
  for (std::size_t kind = 0; kind < counts.packets.size(); ++kind) {
    if (static_cast<PacketKind>(kind) != PacketKind::PAD) outcome.rows += counts.packets[kind];
  }
  others = outcome.rows;
  for (const PacketKind kind : kKinds) {
    std::uint64_t packets = counts.packets[static_cast<std::size_t>(kind)];
    if (kind == PacketKind::MODE_EXEC)
      packets += counts.packets[static_cast<std::size_t>(PacketKind::MODE_TSX)];
    others -= packets;
    digest.add(packets);
  }
  digest.add(others);
  digest.add(counter.state().last_ip);
  outcome.digest = digest.value();
  return outcome;
}

}  // namespace
}  // namespace ptkit::bench

int main(int argc, char** argv) {
  return ptkit::bench::contest_main(argc, argv, {ptkit::bench::count, ptkit::bench::count});
}
