// Code records of a bundle that store a file's bytes once for many address spaces. For .cpp files of this
// folder only.
#pragma once

#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats::ptk {

// Gives shared regions without bytes the bytes that other shared regions have of the same range of the same
// file. Each shared range is appended as a region of its own.
void share_code(std::vector<trace::CodeRegion>& code);

}  // namespace ptkit::formats::ptk
