// Packets as text, in the format of libipt's ptdump.
#pragma once

#include <string>

#include "packet/packet.h"

namespace ptkit::packet {

struct DumpText {
  std::string opcode;   // "tip.pge"
  std::string payload;  // "3: 0000000000401000"
  std::string detail;   // decoded payload of some packets: "cr3 0000000000afafa0"
};

[[nodiscard]] DumpText dump_text(const Packet& packet);

}  // namespace ptkit::packet
