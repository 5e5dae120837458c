#include "capture/trace_units.h"

namespace ptkit::capture {

std::string plural(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace ptkit::capture
