// The lines of a unit by address. Internal to src/dwarf.
#pragma once

#include <cstdint>
#include <vector>

#include "dwarf/context.h"

namespace ptkit::dwarf {

struct LineRow {
  std::uint64_t address = 0;
  std::uint32_t file = kNone;  // number of a string; kNone: a sequence ends here
  std::uint32_t line = 0;      // 0: code that belongs to no line
};

class LineTable {
 public:
  LineTable() = default;
  LineTable(Dwarf_Die& unit, Context& context);

  [[nodiscard]] LineRow at(std::uint64_t address) const noexcept;
  // The path of a file by its number in the unit's line table; kNone if there is none.
  [[nodiscard]] std::uint32_t file(std::uint64_t index) const noexcept {
    return index < files_.size() ? files_[static_cast<std::size_t>(index)] : kNone;
  }

 private:
  void read_rows(Dwarf_Lines* lines, std::size_t count);
  void read_files(Dwarf_Files* files, std::size_t count, const char* folder, Context& context);

  std::vector<LineRow> rows_;  // sorted by address; each reaches to the next one
  std::vector<std::uint32_t> files_;
};

}  // namespace ptkit::dwarf
