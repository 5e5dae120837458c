#include "trace/ptwrite_text.h"

#include "base/hexadecimal.h"

namespace ptkit::trace {

std::string ptwrite_text(std::uint64_t payload) {
  const auto data = static_cast<std::uint32_t>(payload);
  switch (drakvuf_mark(payload)) {
    case DrakvufMark::CR3:
      return "drakvuf: cr3 " + base::hexadecimal(data) + " (low 32 bits)";
    case DrakvufMark::TID:
      return "drakvuf: tid " + std::to_string(data);
    case DrakvufMark::EVENT:
      return "drakvuf: event " + base::hexadecimal(data);
    case DrakvufMark::NO_DATA:
      return "drakvuf: no trace since the event before";
  }
  return {};
}

}  // namespace ptkit::trace
