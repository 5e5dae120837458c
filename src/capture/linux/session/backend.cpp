#include "capture/linux/session/backend.h"

namespace ptkit::capture {

HardwareBackend::Problem HardwareBackend::set_breakpoints(const std::vector<Breakpoint>& breakpoints,
                                                          int pid) {
  static_cast<void>(pid);
  if (breakpoints.empty()) return {};
  return base::Failure{base::Status::UNSUPPORTED, 0, "triggers: this back end has none"};
}

}  // namespace ptkit::capture
