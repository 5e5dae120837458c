// The command line of a program of Windows, which gets its arguments as one text.
#pragma once

#include <string>
#include <vector>

namespace ptkit::capture {

// Quoted so that CommandLineToArgvW() and the C library give the same arguments again.
[[nodiscard]] std::string command_line(const std::vector<std::string>& argv);

}  // namespace ptkit::capture
