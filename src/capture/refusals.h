// What is refused, as failures.
#pragma once

#include <string>
#include <utility>

#include "base/status.h"

namespace ptkit::capture {

// An option's value that cannot be right.
[[nodiscard]] inline base::Failure bad(std::string what) {
  return {base::Status::BAD_CONFIG, 0, std::move(what)};
}

// What this machine, or this back end, cannot do.
[[nodiscard]] inline base::Failure unsupported(std::string what) {
  return {base::Status::UNSUPPORTED, 0, std::move(what)};
}

}  // namespace ptkit::capture
