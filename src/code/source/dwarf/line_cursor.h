// Source lines of many addresses of a file. Internal to src/code/source/dwarf.
#pragma once

#include <cstddef>
#include <cstdint>

#include "code/source/dwarf/debug_info.h"

namespace ptkit::code::dwarf {

class LineTable;

// The line of a near address is found without the lock of the file, too.
class LineCursor final : public code::source::LineCursor {
 public:
  // `info` must outlive it.
  explicit LineCursor(const DebugInfo& info) noexcept : info_(&info) {}

  [[nodiscard]] code::source::SourceLine at(std::uint64_t address) override;

 private:
  const DebugInfo* info_;
  DebugInfo::UnitLines unit_;
  std::size_t row_ = 0;  // in its table
};

}  // namespace ptkit::code::dwarf
