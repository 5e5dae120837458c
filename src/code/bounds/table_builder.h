// Builds a table of functions from the entries of a file, in any order.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "code/bounds/table.h"

namespace ptkit::code::bounds {

inline constexpr std::uint64_t kMostFileBytes = std::numeric_limits<std::uint32_t>::max();

// Removes ranges that overlap an earlier one.
template <typename Range>
void drop_overlaps(std::vector<Range>& ranges) {
  std::uint32_t end = 0;
  std::erase_if(ranges, [&](const Range& one) {
    if (one.begin < end) return true;
    end = one.end;
    return false;
  });
}

// All numbers but RVAs are file offsets. What lies beyond kMostFileBytes is left out.
class TableBuilder {
 public:
  explicit TableBuilder(std::uint64_t file_bytes) noexcept;

  // Code in memory.
  void add_segment(std::uint64_t offset, std::uint64_t size, std::uint64_t rva);
  // A section of PLT stubs, each of `step` bytes.
  void add_stubs(std::uint64_t offset, std::uint64_t size, std::uint64_t step);
  // False: it has no bounds in the file, or is a stub. Stubs are added before functions.
  bool add_function(std::uint64_t offset, std::uint64_t size, bool is_part);
  void add_call_site(std::uint64_t begin, std::uint64_t end, std::uint64_t pad);

  [[nodiscard]] UnwindTable finish();

 private:
  struct Found {
    UnwindTable::Function function;
    bool is_part = false;
  };

  void sort_stubs();
  void finish_functions();
  void finish_call_sites();

  std::uint64_t last_;  // end of the file
  bool has_new_stubs_ = false;
  UnwindTable out_;
  std::vector<Found> found_;
};

}  // namespace ptkit::code::bounds
