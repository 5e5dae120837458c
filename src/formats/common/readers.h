// Declares the input formats. Each is defined in the source file of its name.
#pragma once

#include "formats/common/format.h"

namespace ptkit::formats {

extern const Format kPtkFormat;
extern const Format kPerfDataFormat;
extern const Format kLldbFormat;
extern const Format kLibxdcFormat;
extern const Format kLibiptScriptFormat;
extern const Format kIpttoolFormat;
extern const Format kBtsFormat;
extern const Format kBts32Format;
extern const Format kRawFormat;

}  // namespace ptkit::formats
