// Encodes packets, for tests and tools that write streams.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "packet/encoder.h"
#include "packet/opcodes.h"

namespace ptkit::api::python {

namespace py = pybind11;

void register_encode(py::module_& module);

namespace {

using Column = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

void check_length(const Column& column, py::ssize_t rows, const char* name) {
  if (column.ndim() == 1 && column.shape(0) == rows) return;
  throw py::value_error(std::string(name) + " must have one dimension and as many entries as kind (" +
                        std::to_string(rows) + ")");
}

[[noreturn]] void refuse(std::size_t row, packet::PacketKind kind, const char* why) {
  throw py::value_error("packet " + std::to_string(row) + " (" + std::string(packet::packet_name(kind)) +
                        "): " + why);
}

py::bytes encode_packets(const Column& kind, const Column& payload, const Column& payload2,
                         const Column& flags, unsigned block_items) {
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
      refuse(row, packet.kind, "no BBP block is open");
    if (packet::encode(packet, bytes, block_items == 4) != base::Status::OK) {
      refuse(row, packet.kind, "a field does not fit, or the packet has no bytes of its own");
    }
    const packet::BlockEffect effect = packet::row_of(packet.kind).block;
    if (effect == packet::BlockEffect::OPENS) block_items = packet.payload2 != 0 ? 4 : 8;
    if (effect == packet::BlockEffect::CLOSES) block_items = 0;
  }
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void register_encode(py::module_& module) {
  module.def("encode_packets", &encode_packets, py::arg("kind"), py::arg("payload"), py::arg("payload2"),
             py::arg("flags"), py::kw_only(), py::arg("block_items") = 0,
             "The bytes of packets that are given as columns, as packets() gives them; IPs as raw bytes in "
             "payload.");
}

}  // namespace ptkit::api::python
