// Failures of recording options.
#pragma once

#include <string>
#include <utility>

#include "base/status.h"

namespace ptkit::capture {

// An option has an invalid value.
[[nodiscard]] inline base::Failure invalid_option(std::string what) {
  return {base::Status::BAD_CONFIG, 0, std::move(what)};
}

// This machine or this back end does not support an option.
[[nodiscard]] inline base::Failure unsupported(std::string what) {
  return {base::Status::UNSUPPORTED, 0, std::move(what)};
}

}  // namespace ptkit::capture
