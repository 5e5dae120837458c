// The Windows driver's interface (kernel/include/ptkit/ptkit_windows.h), with what it uses of <winioctl.h>:
// the logic that speaks it is tested where there is no Windows.
#pragma once

#include <cstdint>

// <winioctl.h> has signed numbers of requests. <windows.h> has some of these names.
#ifndef METHOD_BUFFERED
#define METHOD_BUFFERED 0
#define METHOD_OUT_DIRECT 2
#endif
#ifndef FILE_READ_DATA
#define FILE_READ_DATA 1
#define FILE_WRITE_DATA 2
#endif
#undef CTL_CODE
#define CTL_CODE(type, function, method, access)                                                     \
  ((std::uint32_t{type} << 16U) | (std::uint32_t{access} << 14U) | (std::uint32_t{function} << 2U) | \
   std::uint32_t{method})

#include "ptkit/ptkit_windows.h"
