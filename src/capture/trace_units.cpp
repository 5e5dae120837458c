#include "capture/trace_units.h"

namespace ptkit::capture {

TraceUnits::Problem TraceUnits::watch(const std::vector<WatchPlace>& places, int pid) {
  static_cast<void>(pid);
  if (places.empty()) return {};
  return base::Failure{base::Status::UNSUPPORTED, 0, "triggers: this back end has none"};
}

std::string plural(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace ptkit::capture
