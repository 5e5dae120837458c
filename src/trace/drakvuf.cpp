#include "trace/drakvuf.h"

#include "base/hexadecimal.h"

namespace ptkit::trace::drakvuf {

std::string annotation_text(std::uint64_t payload) {
  const auto data = static_cast<std::uint32_t>(payload);
  switch (command_of(payload)) {
    case Command::CR3:
      return "drakvuf: cr3 " + base::hexadecimal(data) + " (low 32 bits)";
    case Command::TID:
      return "drakvuf: tid " + std::to_string(data);
    case Command::EVENT:
      return "drakvuf: event " + base::hexadecimal(data);
    case Command::NO_DATA:
      return "drakvuf: no trace since the event before";
  }
  return {};
}

}  // namespace ptkit::trace::drakvuf
