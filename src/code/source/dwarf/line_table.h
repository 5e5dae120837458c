// The lines of a unit by address. Internal to src/code/source/dwarf.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "code/source/dwarf/context.h"
#include "code/source/source_info.h"

namespace ptkit::code::dwarf {

struct LineRow {
  std::uint64_t address = 0;
  std::uint32_t file = code::source::kNone;  // by its number in the table; kNone: a sequence ends here
  std::uint32_t line = 0;                    // 0: code that belongs to no line
};

class LineTable {
 public:
  LineTable() = default;
  LineTable(Dwarf_Die& unit, Context& context);

  [[nodiscard]] LineRow at(std::uint64_t address) const noexcept;
  // Searches from row `near` on, which becomes the row that was found.
  [[nodiscard]] LineRow at(std::uint64_t address, std::size_t& near) const noexcept;
  // The number of a file, if the table has one with a path; else kNone.
  [[nodiscard]] std::uint32_t file(std::uint64_t number) const noexcept {
    const bool is_known = number < files_.size() && !files_[static_cast<std::size_t>(number)].empty();
    return is_known ? static_cast<std::uint32_t>(number) : code::source::kNone;
  }
  [[nodiscard]] code::source::SourceLine line_of(const LineRow& row) const noexcept {
    return row.file == code::source::kNone ? code::source::SourceLine{}
                                           : code::source::SourceLine{files_[row.file], row.line};
  }

 private:
  void read_rows(Dwarf_Lines* lines, std::size_t count);
  void read_files(Dwarf_Files* files, std::size_t count, const char* folder, Context& context);

  std::vector<LineRow> rows_;            // sorted by address; each reaches to the next one
  std::vector<std::string_view> files_;  // paths by number; empty: not known
};

}  // namespace ptkit::code::dwarf
