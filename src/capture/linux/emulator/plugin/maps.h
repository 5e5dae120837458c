// The mapped files of the guest's code.
#pragma once

#include <stdint.h>

namespace ptkit::capture::plugin {

// Logs the file mapping at `pc` if it was not logged. Called during translation.
void log_mapping(uint64_t pc);
// Mappings in [begin, end) may have changed: they are logged again.
void invalidate_mappings(uint64_t begin, uint64_t end);

}  // namespace ptkit::capture::plugin
