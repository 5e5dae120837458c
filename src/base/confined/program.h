// Runs a program of this machine on hostile input.
//
//   this process --memory file--> program without rights --pipe--> this process
//
// The program reads its input by /proc/self/fd/3 and writes to a pipe. It has no environment, no other
// descriptors, no privileges, and limits of memory and time; it opens files for reading alone, and has no
// sockets and no children (confine_program()). No shell is involved.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/posix/fd.h"

namespace ptkit::base::confined {

inline constexpr std::string_view kProgramInput = "/proc/self/fd/3";

struct ProgramLimits {
  std::uint64_t output_bytes = 0;
  std::uint64_t memory_bytes = 0;
  std::chrono::milliseconds time{0};
};

// The path of a program in the folders of PATH, or of the highest version of it: "llvm-pdbutil", or else
// "llvm-pdbutil-14". Empty: there is none. Relative folders in PATH do not count.
[[nodiscard]] std::string find_program(std::string_view name);

// A file in memory that nothing can change, which a process without rights can read. -1: there is no memory.
[[nodiscard]] base::Fd sealed_copy(base::Bytes bytes);

// Gives what the program writes to `take`; stops the program when that returns false. Returns what kept the
// program from a regular end with status 0; empty: nothing, or `take` stopped it. Thread-safe.
[[nodiscard]] std::string run_program(const std::string& path, const std::vector<std::string>& arguments,
                                      const base::Fd& input, const ProgramLimits& limits,
                                      const std::function<bool(std::string_view)>& take);

}  // namespace ptkit::base::confined
