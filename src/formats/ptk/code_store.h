// Code records of a bundle that refer to others: bytes of a file that are stored once for many address
// spaces, and ends of mappings. For .cpp files of this folder only.
#pragma once

#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats::ptk {

// Gives shared regions without bytes the bytes that other shared regions have of the same range of the same
// file. Each shared range is appended as a region of its own.
void share_code(std::vector<trace::CodeRegion>& code);

// Ends mappings. `ends`: regions with the space and the addresses at which a mapping begins, and with its end
// as `tsc_from`. A mapping that begins later goes on.
void end_code(std::vector<trace::CodeRegion>& code, const std::vector<trace::CodeRegion>& ends);

}  // namespace ptkit::formats::ptk
