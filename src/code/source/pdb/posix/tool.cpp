#include "code/source/pdb/tool.h"

#include <algorithm>
#include <chrono>

#include "base/confined/program.h"
#include "base/memory_left.h"

namespace ptkit::code::pdb {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

// A file takes some tenths of a second for each MiB, and its dump has some ten times its size.
base::confined::ProgramLimits limits_for(std::uint64_t size) {
  constexpr std::uint64_t kMostSeconds = 300;
  const std::uint64_t seconds = std::min(10 + size / kMiB, kMostSeconds);
  return {16 * kMiB + 64 * size, 1024 * kMiB + 8 * size, std::chrono::seconds(seconds)};
}

}  // namespace

std::string find_tool() { return base::confined::find_program("llvm-pdbutil"); }

std::string Tool::run(const std::vector<std::string>& arguments,
                      const std::function<bool(std::string_view)>& take, std::uint64_t most_output) const {
  constexpr std::uint64_t kMostShare = 4;  // a copy of the file is in memory meanwhile
  if (file_.size() > base::memory_left().pages.usable() / kMostShare)
    return "there is too little memory for it";
  const base::Fd input = base::confined::sealed_copy(file_);
  if (input.get() < 0) return "there is too little memory for it";
  base::confined::ProgramLimits limits = limits_for(file_.size());
  if (most_output != 0) limits.output_bytes = most_output;
  std::vector<std::string> all = arguments;
  all.emplace_back(base::confined::kProgramInput);
  const std::string problem = base::confined::run_program(path_, all, input, limits, take);
  return problem.empty() ? std::string() : "llvm-pdbutil: " + problem;
}

}  // namespace ptkit::code::pdb
