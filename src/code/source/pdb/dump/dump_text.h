// The parts of what `llvm-pdbutil dump` writes. Internal to src/code/source/pdb.
//
//                         Symbols
//   ============================================================
//     Mod 0000 | `/src/t.o`:
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "code/source/pdb/dump/output_lines.h"

namespace ptkit::code::pdb {

class DumpText {
 public:
  // Calls begin_part(title) and read_line(line) of `reader`. A title is a line of the part before it, too:
  // what it is shows in the next line.
  template <typename Reader>
  void take(std::string_view text, Reader& reader) {
    lines_.take(text, [&](std::string_view line) {
      if (is_rule(line)) {
        reader.begin_part(trim(before_));
      } else {
        reader.read_line(line);
      }
      before_ = line;
    });
  }

 private:
  [[nodiscard]] static bool is_rule(std::string_view line) noexcept {
    constexpr std::size_t kLeast = 20;
    return line.size() >= kLeast && line.find_first_not_of('=') == std::string_view::npos;
  }

  OutputLines lines_;
  std::string before_;
};

}  // namespace ptkit::code::pdb
