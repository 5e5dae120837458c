// Formats packets and events as text.
#include "bindings/bindings.h"
#include "flow/rows/text.h"
#include "packet/opcodes.h"
#include "packet/text.h"

namespace ptkit::bindings {
namespace {

using Numbers = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

void check_rows(std::initializer_list<Numbers> columns) {
  for (const Numbers& column : columns) {
    if (column.ndim() != 1 || column.size() != columns.begin()->size())
      throw py::value_error("columns must have one dimension and the same length");
  }
}

py::list packet_texts(const Numbers& kind, const Numbers& payload, const Numbers& payload2,
                      const Numbers& flags) {
  check_rows({kind, payload, payload2, flags});
  py::list texts;
  for (py::ssize_t row = 0; row < kind.size(); ++row) {
    if (kind.data()[row] >= packet::kPacketKinds) throw py::value_error("no such kind of packet");
    packet::Packet packet;
    packet.kind = static_cast<packet::PacketKind>(kind.data()[row]);
    packet.payload = payload.data()[row];
    packet.payload2 = payload2.data()[row];
    packet.flags = static_cast<std::uint8_t>(flags.data()[row]);
    const packet::DumpText text = packet::dump_text(packet);
    texts.append(py::make_tuple(text.opcode, std::string_view(text.payload), std::string_view(text.detail)));
  }
  return texts;
}

py::list event_texts(const Numbers& kind, const Numbers& payload, const Numbers& payload2,
                     const Numbers& payload3, const Numbers& flags) {
  check_rows({kind, payload, payload2, payload3, flags});
  py::list texts;
  for (py::ssize_t row = 0; row < kind.size(); ++row) {
    flow::Event event;
    event.kind = static_cast<flow::EventKind>(kind.data()[row]);
    event.payload = payload.data()[row];
    event.payload2 = payload2.data()[row];
    event.payload3 = payload3.data()[row];
    event.flags = static_cast<std::uint16_t>(flags.data()[row]);
    texts.append(py::cast(flow::event_text(event)));
  }
  return texts;
}

}  // namespace

void register_text(py::module_& module) {
  module.def("packet_texts", &packet_texts, py::arg("kind"), py::arg("payload"), py::arg("payload2"),
             py::arg("flags"), "(opcode, payload, detail) of each packet, in the manner of ptdump.");
  module.def("event_texts", &event_texts, py::arg("kind"), py::arg("payload"), py::arg("payload2"),
             py::arg("payload3"), py::arg("flags"), "What each event tells, in the manner of ptxed.");
}

}  // namespace ptkit::bindings
