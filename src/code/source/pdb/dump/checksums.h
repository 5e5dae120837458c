// Reads the text that `llvm-pdbutil pdb2yaml --modules --subsections=fc` writes: the files of each module.
// The place of a file among the checksums is its number elsewhere. Internal to src/code/source/pdb.
//
//   - Module:          '/src/a.o'
//     Subsections:
//       - !FileChecksums
//         Checksums:
//           - FileName:        '/src/a.c'
//             Kind:            MD5
//             Checksum:        1A41863D876792A0133722A6B38963BD
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "code/source/budget.h"
#include "code/source/pdb/dump/output_lines.h"
#include "code/source/strings.h"

namespace ptkit::code::pdb {

class ChecksumReader {
 public:
  ChecksumReader(code::source::Strings& texts, code::source::Budget& memory)
      : texts_(texts), memory_(memory) {}

  [[nodiscard]] bool take(std::string_view text);
  // The number of the path of a file, by its place in the checksums of a module; kNone: there is none.
  [[nodiscard]] std::uint32_t path(std::uint32_t module, std::uint32_t place) const;

 private:
  void read_line(std::string_view line);

  code::source::Strings& texts_;
  code::source::Budget& memory_;
  OutputLines lines_;
  std::uint32_t modules_ = 0;
  std::uint32_t place_ = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> paths_;  // by module and place
};

}  // namespace ptkit::code::pdb
