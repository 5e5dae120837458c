// Sums over frames, and the columns that they are in. sums.def has their list.
#pragma once

#include <cstdint>

#include "tables/calls/code/function_table.h"
#include "tables/calls/stack/frame.h"
#include "tables/columns/batch.h"

namespace ptkit::tables::calls {

// Sums over all frames of a group.
struct FrameSums {
#define PT_FRAME_SUM(name, part) std::uint64_t name = 0;
#include "tables/calls/sums/sums.def"
  bool time_known = false;
  bool count_exact = true;

  void add(const Frame& frame) noexcept {
#define PT_FRAME_SUM(name, part) name += (part);
#include "tables/calls/sums/sums.def"
    time_known = time_known || frame.has_times();
    count_exact = count_exact && (frame.flags & FRAME_UNDECIDED) == 0;
  }
  void add_all(const FrameSums& others) noexcept {
#define PT_FRAME_SUM(name, part) name += others.name;
#include "tables/calls/sums/sums.def"
    time_known = time_known || others.time_known;
    count_exact = count_exact && others.count_exact;
  }
};

// Sums over those frames of a group that have no other one of the group below.
struct GroupSums {
#define PT_GROUP_SUM(name, part) std::uint64_t name = 0;
#define PT_GROUP_TIME(name, part) std::uint64_t name = 0;
#include "tables/calls/sums/sums.def"

  // True if the frame's times count.
  bool add(const Frame& frame, const GroupShare& share) noexcept {
#define PT_GROUP_SUM(name, part) name += (part);
#include "tables/calls/sums/sums.def"
    if (share.is_recursive || !frame.has_times()) return false;
#define PT_GROUP_TIME(name, part) name += (part);
#include "tables/calls/sums/sums.def"
    return true;
  }
  void add_all(const GroupSums& others) noexcept {
#define PT_GROUP_SUM(name, part) name += others.name;
#define PT_GROUP_TIME(name, part) name += others.name;
#include "tables/calls/sums/sums.def"
  }
};

// The flags of a function or calling context.
[[nodiscard]] inline unsigned function_flags(const Function& function, std::uint32_t number) noexcept {
  const auto flag = [](bool is_set, tables::columns::FunctionFlag bit) {
    return is_set ? unsigned{bit} : 0U;
  };
  const bool is_import = function.import != 0;
  const bool has_entry = number >= kFirstFunction && function.thread == trace::kNoId && !is_import;
  return flag(number == kSyscallFunction, tables::columns::FUNCTION_SYSCALL) |
         flag(number == kInterruptFunction, tables::columns::FUNCTION_INTERRUPT) |
         flag(is_import, tables::columns::FUNCTION_IMPORT) |
         flag(has_entry, tables::columns::FUNCTION_ENTRY_KNOWN) |
         flag(function.file >= 0, tables::columns::FUNCTION_FILE_KNOWN) |
         flag(function.inlined != 0, tables::columns::FUNCTION_INLINED);
}
[[nodiscard]] inline unsigned sum_flags(const FrameSums& sums) noexcept {
  return (sums.time_known ? unsigned{tables::columns::FUNCTION_TIME_KNOWN} : 0U) |
         (sums.count_exact ? unsigned{tables::columns::FUNCTION_COUNT_EXACT} : 0U);
}

}  // namespace ptkit::tables::calls
