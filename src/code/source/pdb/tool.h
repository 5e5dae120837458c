// LLVM's llvm-pdbutil, on one PDB. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace ptkit::code::pdb {

// The path of the tool in the folders of PATH, or of its highest version. Empty: there is none.
[[nodiscard]] std::string find_tool();

class Tool {
 public:
  // `path`: of the program. `file` must outlive it.
  Tool(std::string path, base::Bytes file) : path_(std::move(path)), file_(file) {}

  // Gives what the tool writes to `take`, until that returns false. Returns what keeps it from reading the
  // file; empty: nothing. `most_output`: in bytes; 0: what the file's size justifies.
  [[nodiscard]] std::string run(const std::vector<std::string>& arguments,
                                const std::function<bool(std::string_view)>& take,
                                std::uint64_t most_output = 0) const;
  [[nodiscard]] base::Bytes file() const noexcept { return file_; }

 private:
  std::string path_;
  base::Bytes file_;
};

}  // namespace ptkit::code::pdb
