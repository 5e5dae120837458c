// Properties of a stream without rows: packet counts, first and last time, threads. And packets from columns.
#include <pybind11/numpy.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/python/bindings.h"
#include "api/python/long_calls.h"
#include "packet/encoder.h"
#include "packet/opcodes.h"
#include "packet/scan.h"
#include "time/span.h"

namespace ptkit::api::python {
namespace {

// Bytes between two checks for signals: some milliseconds.
constexpr std::uint64_t kSliceBytes = std::uint64_t{32} << 20;

py::dict count_stream(const Session& session, std::uint32_t stream, bool sync) {
  const trace::Stream& counted = session.bundle->streams.at(stream);
  const bool has_packets = counted.kind == trace::StreamKind::PROCESSOR_TRACE;
  if (has_packets) prepare_stream(counted);
  const base::Bytes bytes = has_packets ? counted.data.bytes() : base::Bytes{};
  packet::PacketCounter counter(bytes, sync, packet::errata_for(session.bundle->configuration.cpu));
  const auto run = [&counter] {
    const py::gil_scoped_release release;
    return counter.run(kSliceBytes);
  };
  while (run()) {
    check_signals();
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

using Ids = std::pair<std::int64_t, std::int64_t>;  // pid and tid; -1: not known

std::set<Ids> threads_of(const Session& session, std::uint32_t index) {
  const trace::Stream& stream = session.bundle->streams.at(index);
  std::set<Ids> threads{{stream.pid, stream.tid}};
  for (const trace::Switch& to : stream.switches) threads.emplace(to.pid, to.tid);
  return threads;
}

using TimedIds = std::tuple<std::uint64_t, std::int64_t, std::int64_t, unsigned>;

std::vector<TimedIds> switches_of(const Session& session, std::uint32_t index) {
  std::vector<TimedIds> switches;
  for (const trace::Switch& to : session.bundle->streams.at(index).switches)
    switches.emplace_back(to.tsc, to.pid, to.tid, static_cast<unsigned>(to.departure));
  return switches;
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> span_of(const Session& session, std::uint32_t index) {
  const trace::TraceBundle& bundle = *session.bundle;
  const trace::Stream& stream = bundle.streams.at(index);
  const py::gil_scoped_release release;
  const auto errata = packet::errata_for(bundle.configuration.cpu);
  const auto span = time::span_of(stream, bundle.configuration.clock, errata);
  if (!span) return std::nullopt;
  return std::pair(span->first, span->last);
}

using PacketColumn = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

void check_length(const PacketColumn& column, py::ssize_t rows, const char* name) {
  if (column.ndim() == 1 && column.shape(0) == rows) return;
  throw py::value_error(std::string(name) + " must have one dimension and as many entries as kind (" +
                        std::to_string(rows) + ")");
}

[[noreturn]] void refuse_packet(std::size_t row, packet::PacketKind kind, const char* why) {
  throw py::value_error("packet " + std::to_string(row) + " (" + std::string(packet::packet_name(kind)) +
                        "): " + why);
}

py::bytes encode_packets(const PacketColumn& kind, const PacketColumn& payload, const PacketColumn& payload2,
                         const PacketColumn& flags, unsigned block_items) {
  if (kind.ndim() != 1) throw py::value_error("kind must have one dimension");
  check_length(payload, kind.shape(0), "payload");
  check_length(payload2, kind.shape(0), "payload2");
  check_length(flags, kind.shape(0), "flags");
  if (block_items != 0 && block_items != 4 && block_items != 8) {
    throw py::value_error("block_items must be 0 (no block is open), 4 or 8, not " +
                          std::to_string(block_items));
  }
  std::vector<std::uint8_t> bytes;
  const auto rows = static_cast<std::size_t>(kind.shape(0));
  for (std::size_t row = 0; row < rows; ++row) {
    const std::uint64_t value = kind.data()[row];
    if (value >= packet::kPacketKinds)
      throw py::value_error("packet " + std::to_string(row) + ": no such kind");
    packet::Packet packet;
    packet.kind = static_cast<packet::PacketKind>(value);
    packet.payload = payload.data()[row];
    packet.payload2 = payload2.data()[row];
    packet.flags = static_cast<std::uint8_t>(flags.data()[row]);
    if (packet.kind == packet::PacketKind::BIP && block_items == 0)
      refuse_packet(row, packet.kind, "no BBP block is open");
    if (packet::encode(packet, bytes, block_items == 4) != base::Status::OK) {
      refuse_packet(row, packet.kind, "a field does not fit, or the packet has no bytes of its own");
    }
    const packet::BlockEffect effect = packet::row_of(packet.kind).block;
    if (effect == packet::BlockEffect::OPENS) block_items = packet.payload2 != 0 ? 4 : 8;
    if (effect == packet::BlockEffect::CLOSES) block_items = 0;
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void register_packets(py::module_& module) {
  module.def("count_packets", &count_stream, py::arg("session"), py::arg("stream"), py::arg("sync"),
             "Counts by value of PacketKind, and what else PacketCounter knows.");
  module.def("stream_threads", &threads_of, py::arg("session"), py::arg("stream"),
             "(pid, tid) of the threads that a stream can have rows of; -1 where one is not known.");
  module.def(
      "stream_switches", &switches_of, py::arg("session"), py::arg("stream"),
      "(tsc, pid, tid, departure) of the context switches of a stream. TSC 0: the time is not known; -1: no "
      "thread is. Of the thread before, 0: it is not known how it left, 1: it waits, 2: it was preempted.");
  module.def("stream_span", &span_of, py::arg("session"), py::arg("stream"),
             "First and last time of a stream in TSC ticks; None if it has no times.");
  module.def("encode_packets", &encode_packets, py::arg("kind"), py::arg("payload"), py::arg("payload2"),
             py::arg("flags"), py::kw_only(), py::arg("block_items") = 0,
             "The bytes of packets that are given as columns, as packets() gives them; IPs as raw bytes in "
             "payload.");
}

}  // namespace ptkit::api::python
