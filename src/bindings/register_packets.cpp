// Counts of packets.
#include "bindings/bindings.h"
#include "packet/scan.h"

namespace ptkit::bindings {
namespace {

// Between two looks for signals: some milliseconds.
constexpr std::uint64_t kSliceBytes = std::uint64_t{32} << 20;

py::dict count_stream(const Session& session, std::uint32_t stream, bool sync) {
  const trace::Stream& counted = session.bundle->streams.at(stream);
  const bool has_packets = counted.kind == trace::StreamKind::PROCESSOR_TRACE;
  const base::Bytes bytes = has_packets ? counted.data.bytes() : base::Bytes{};
  packet::PacketCounter counter(bytes, sync, packet::errata_for(session.bundle->configuration.cpu));
  const auto run = [&counter] {
    const py::gil_scoped_release release;
    return counter.run(kSliceBytes);
  };
  while (run()) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
  const packet::PacketCounts& counts = counter.counts();
  const packet::DecoderState state = counter.state();
  py::dict result;
  result["packets"] = std::vector<std::uint64_t>(counts.packets.begin(), counts.packets.end());
  result["tnt_bits"] = counts.tnt_bits;
  result["errors"] = counts.errors;
  result["lost_bytes"] = counts.lost_bytes;
  result["last_ip"] = state.last_ip_known ? py::cast(state.last_ip) : py::none();
  return result;
}

}  // namespace

void register_packets(py::module_& module) {
  module.def("count_packets", &count_stream, py::arg("session"), py::arg("stream"), py::arg("sync"),
             "Counts by value of PacketKind, and what else PacketCounter knows.");
}

}  // namespace ptkit::bindings
