// Debugging information entries (DIEs) in the order of the file. Internal to src/code/source/dwarf.
#pragma once

#include <elfutils/libdw.h>

#include <cstddef>
#include <cstdint>

#include "code/source/budget.h"

namespace ptkit::code::dwarf {

// Visits the DIEs below a DIE. libdw itself finds the sibling of a DIE by all DIEs below it, which takes
// quadratic time for deep trees, and no end where DW_AT_sibling of a damaged file leads back. So it is asked
// for siblings of DIEs only where it need not look further.
class Walker {
 public:
  Walker(const Dwarf_Die& root, code::source::Budget& budget);

  // The next DIE; null after the last one, or where the DIEs are damaged. `into`: also those below the
  // current one.
  [[nodiscard]] Dwarf_Die* next(bool into);
  // 1 for children of the root.
  [[nodiscard]] std::size_t depth() const noexcept { return depth_; }

 private:
  [[nodiscard]] bool step(bool into);
  [[nodiscard]] bool leave(const void* end_of_list);
  [[nodiscard]] bool go_to(const Dwarf_Die& next);

  code::source::Budget& budget_;
  Dwarf_Die die_;
  const std::uint8_t* end_ = nullptr;  // of the unit
  std::size_t depth_ = 0;
};

}  // namespace ptkit::code::dwarf
