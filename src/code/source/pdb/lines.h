// Source lines of functions in a PDB. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "code/source/budget.h"
#include "code/source/pdb/module_files.h"
#include "code/source/pdb/tables.h"

namespace ptkit::code::pdb {

class LineReader {
 public:
  // `memory`: the bytes that lines may take. All must outlive the object.
  LineReader(const Sections& sections, code::source::Budget& memory) : sections_(sections), memory_(memory) {}

  // Adds the lines of a module. Returns their problem; empty: none.
  [[nodiscard]] std::string add(const Stream& stream, const ModuleFiles& files);
  // All lines, sorted; once, and if there is no problem. The first line of a function has the code before it,
  // too. Of several lines at an address, the first one has the instruction there, and the last one what
  // follows: DWARF of the same code says so. Of several contributions to an address, the first one counts:
  // equal functions that the linker folded have one each.
  [[nodiscard]] std::vector<Row> rows();

 private:
  // Lines of one contribution to a section; `address` of its rows is the offset in the section.
  struct Contribution {
    std::uint32_t section = 0;
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::size_t first_row = 0;
    std::size_t end_row = 0;
  };

  [[nodiscard]] bool add_part(Cursor part, const ModuleFiles& files);
  void begin_file(Contribution next, std::uint32_t first);
  [[nodiscard]] std::span<Row> rows_of(const Contribution& one) noexcept {
    return std::span(rows_).subspan(one.first_row, one.end_row - one.first_row);
  }

  const Sections& sections_;
  code::source::Budget& memory_;
  std::vector<Contribution> contributions_;
  std::vector<Row> rows_;
};

}  // namespace ptkit::code::pdb
