// Source lines of many addresses of a file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dwarf/debug_info.h"

namespace ptkit::dwarf {

class LineTable;

// Remembers where the last line was found: that of a near address is found without a search, and without the
// lock of the file.
class LineCursor {
 public:
  // `info` must outlive it.
  explicit LineCursor(const DebugInfo& info) noexcept : info_(&info) {}

  [[nodiscard]] SourceLine at(std::uint64_t address);

 private:
  const DebugInfo* info_;
  DebugInfo::UnitLines unit_;
  std::size_t row_ = 0;  // in its table
};

}  // namespace ptkit::dwarf
