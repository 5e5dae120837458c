// The signals that a program which is recorded begins with at their defaults.
#pragma once

#include <signal.h>

#include <array>

namespace ptkit::capture {

// An interpreter may ignore SIGPIPE and SIGXFSZ. SIGINT ends a recording and asks the program to end: a shell
// that runs the recorder in the background has both ignore it.
inline constexpr std::array kDefaultSignals{SIGINT, SIGPIPE, SIGXFSZ};

}  // namespace ptkit::capture
