// One entry per input format; each is defined in the file of its name.
#pragma once

#include "formats/registry.h"

namespace ptkit::formats {

extern const Format kPtkFormat;
extern const Format kPerfDataFormat;
extern const Format kLldbFormat;
extern const Format kDrakvufFormat;
extern const Format kLibxdcFormat;
extern const Format kRawFormat;

}  // namespace ptkit::formats
