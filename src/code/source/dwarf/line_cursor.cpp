#include "code/source/dwarf/line_cursor.h"

#include "code/source/dwarf/line_table.h"

namespace ptkit::code::dwarf {

code::source::SourceLine LineCursor::at(std::uint64_t address) {
  if (address < unit_.first || address > unit_.last) {
    const LineTable* const before = unit_.lines;
    unit_ = info_->lines_at(address);
    if (unit_.lines != before) row_ = 0;
  }
  return unit_.lines == nullptr ? code::source::SourceLine{}
                                : unit_.lines->line_of(unit_.lines->at(address, row_));
}

}  // namespace ptkit::code::dwarf
