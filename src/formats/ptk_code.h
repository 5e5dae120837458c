// Code records of a bundle that have their bytes once for many address spaces. For .cpp files of this folder
// only.
#pragma once

#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats::ptk {

// Shared regions without bytes get those that other shared regions have of the same part of the same file, in
// pieces behind them.
void share_code(std::vector<trace::CodeRegion>& code);

}  // namespace ptkit::formats::ptk
