// The parts of a module's stream after its symbols (C13), and the paths of its source files. Internal to
// src/code/source/pdb.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "code/source/budget.h"
#include "code/source/pdb/cursor.h"
#include "code/source/pdb/debug_streams.h"
#include "code/source/strings.h"

namespace ptkit::code::pdb {

// Paths of the PDB, by their offset in the stream "/names".
class Paths {
 public:
  // `texts` gets the paths. All must outlive the object.
  Paths(const MsfFile& file, const DebugStreams& streams, code::source::Strings& texts,
        code::source::Budget& memory);

  // The number of a path in `texts`; kNone: it is not known.
  [[nodiscard]] std::uint32_t number(std::uint32_t offset);

 private:
  Stream stream_;
  code::source::Strings& texts_;
  code::source::Budget& memory_;
  std::unordered_map<std::uint32_t, std::uint32_t> numbers_;  // by offset
};

struct Subsection {
  static constexpr std::uint32_t kLines = 0xf2;
  static constexpr std::uint32_t kChecksums = 0xf4;
  static constexpr std::uint32_t kInlinees = 0xf6;
  std::uint32_t kind = 0;
  std::uint32_t begin = 0;  // in the module's stream
  std::uint32_t end = 0;
};

class ModuleFiles {
 public:
  static constexpr std::uint64_t kEntryBytes = 64;  // memory of an entry of a table

  // `stream`: of the module.
  ModuleFiles(const Stream& stream, const Module& module, Paths& paths);

  // The problem of the parts; empty: none.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  [[nodiscard]] const std::vector<Subsection>& subsections() const noexcept { return subsections_; }
  // The number of a file's path, by its offset in the checksums; kNone: it is not known.
  [[nodiscard]] std::uint32_t path(std::uint32_t offset) const;

 private:
  struct File {
    std::uint32_t offset = 0;
    std::uint32_t name = 0;
  };
  void read_checksums(Cursor checksums);

  Paths& paths_;
  std::vector<Subsection> subsections_;
  std::vector<File> files_;  // by offset
  std::string problem_;
};

}  // namespace ptkit::code::pdb
