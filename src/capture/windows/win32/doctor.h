// Reports what works on this system.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/windows/requests.h"

namespace ptkit::capture::win32 {

struct Findings {
  std::optional<ptkit_windows_query> query;  // what the driver answered
  std::string problem;                       // why nothing can be recorded, and what to do; empty: it can
  std::vector<std::string> lines;            // all of this in words
};
[[nodiscard]] Findings examine();

}  // namespace ptkit::capture::win32
