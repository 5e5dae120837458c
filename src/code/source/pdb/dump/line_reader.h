// Reads the text that `llvm-pdbutil dump -l --section-headers` writes. Internal to src/code/source/pdb.
//
//                            Lines
//   ============================================================
//   Mod 0000 | `/src/a.o`:
//   /src/a.c (MD5: 1A41863D876792A0133722A6B38963BD)
//     0001:00000000-00000212, line/addr entries = 3
//       12 00000000 !   13 0000000C !   NSI 00000029
//
// Line, offset in the section, and ! where no statement begins. NSI and ASI: code of no line, over which
// debuggers step (or into which they always step).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "code/source/budget.h"
#include "code/source/pdb/dump/dump_text.h"
#include "code/source/pdb/dump/rows.h"
#include "code/source/pdb/dump/sections.h"
#include "code/source/strings.h"

namespace ptkit::code::pdb {

class LineReader {
 public:
  // Paths of files become strings of `paths`. Both must outlive it. `memory`: the bytes of what is read.
  LineReader(code::source::Strings& paths, code::source::Budget& memory) : paths_(paths), memory_(memory) {}

  // Returns false if there is no need of more: problem() says why.
  [[nodiscard]] bool take(std::string_view text);
  // After the last text: what is wrong with it; empty: nothing.
  [[nodiscard]] std::string problem() const;
  // All lines, sorted; once, and if there is no problem. The first line of a function has the code before it,
  // too. Of several lines at an address, the first one has the instruction there, and the last one what
  // follows: DWARF of the same code says so. Of several contributions to an address, the first one counts:
  // equal functions that the linker folded have one each.
  [[nodiscard]] std::vector<Row> rows();

 private:
  friend class DumpText;
  enum class Part : std::uint8_t { OTHER, LINES, SECTIONS };
  // Lines of one contribution to a section; `address` of its rows is the offset in the section.
  struct Contribution {
    std::uint32_t section = 0;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::vector<Row> rows;
  };

  void begin_part(std::string_view title);
  void read_line(std::string_view line);
  [[nodiscard]] bool read_head(std::string_view line);
  [[nodiscard]] bool read_entries(std::string_view line);
  [[nodiscard]] bool goes_on(std::uint32_t first) const;
  void begin_file(std::string_view line);

  code::source::Strings& paths_;
  code::source::Budget& memory_;
  DumpText text_;
  Part part_ = Part::OTHER;
  Sections sections_;
  std::vector<Contribution> contributions_;
  std::optional<Contribution> next_;  // of which no entry has been read
  std::uint32_t file_ = code::source::kNone;
  std::uint32_t expected_ = 0;  // entries that must follow
  std::string unknown_;         // the last line, if it is none of these
  bool is_unknown_ = false;
  bool has_lines_ = false;
};

}  // namespace ptkit::code::pdb
