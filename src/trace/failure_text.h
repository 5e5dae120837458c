// A failure as a sentence.
#pragma once

#include <string>

#include "base/status.h"

namespace ptkit::trace {

// Sentence of the status, with the details and the offset.
[[nodiscard]] std::string failure_text(const base::Failure& failure);

}  // namespace ptkit::trace
