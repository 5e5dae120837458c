// The signals that a recorder resets to their defaults for the recorded program.
#pragma once

#include <signal.h>

#include <array>

namespace ptkit::capture {

// An interpreter may ignore SIGPIPE and SIGXFSZ. A shell makes a background recorder and its program ignore
// SIGINT, which the recorder uses to end the program.
inline constexpr std::array kDefaultSignals{SIGINT, SIGPIPE, SIGXFSZ};

}  // namespace ptkit::capture
