// Names and numbers are from "x64 exception handling" (Microsoft), section "struct UNWIND_INFO".
#include "code/image/pe/pe_functions.h"

#include <algorithm>
#include <optional>

namespace ptkit::code::image {
namespace {

constexpr std::size_t kRowBytes = 12;  // RUNTIME_FUNCTION: begin, end, UNWIND_INFO
constexpr std::size_t kInfoBytes = 4;  // UNWIND_INFO without its codes
constexpr std::size_t kCodeBytes = 2;
constexpr unsigned kChained = 4;  // UNW_FLAG_CHAININFO

// A row of the directory.
struct Row {
  PeFunction function;
  std::uint32_t parent = 0;  // begin of the entry that the row continues
};

// The entry that a row continues: the row at the address of its UNWIND_INFO if that has bit 0, or else the
// one after the UNWIND_INFO, if that is chained. nullopt: the row begins a function.
std::optional<std::uint32_t> parent_of(const PeFile& file, std::uint32_t unwind_info) {
  std::uint64_t at = unwind_info & ~1U;
  if ((unwind_info & 1U) == 0) {
    const base::Bytes info = file.at_address(unwind_info, kInfoBytes);
    if (info.empty() || (unsigned{info[0]} >> 3U & kChained) == 0) return std::nullopt;
    at += kInfoBytes + (std::size_t{info[2]} + 1) / 2 * 2 * kCodeBytes;  // an even number of codes
  }
  const base::Bytes row =
      at > UINT32_MAX ? base::Bytes() : file.at_address(static_cast<std::uint32_t>(at), 4);
  return row.empty() ? 0 : load_u32(row, 0);
}

}  // namespace

std::vector<PeFunction> pe_functions(const PeFile& file) {
  std::vector<PeFunction> found;
  if (!file.is_64_bit()) return found;
  const PeFile::Directory table = file.directory(PeFile::kFunctions);
  const base::Bytes bytes = file.at_address(table.address, table.size);
  std::vector<Row> rows;
  for (std::size_t at = 0; at + kRowBytes <= bytes.size(); at += kRowBytes) {
    const std::uint32_t begin = load_u32(bytes, at);
    const std::uint32_t end = load_u32(bytes, at + 4);
    if (end <= begin) continue;
    const auto parent = parent_of(file, load_u32(bytes, at + 8));
    rows.push_back({{begin, end, parent.has_value()}, parent.value_or(begin)});
  }
  std::ranges::stable_sort(rows, {}, [](const Row& row) { return row.function.begin; });
  for (const Row& row : rows) {
    PeFunction* const last = found.empty() ? nullptr : &found.back();
    if (last != nullptr && last->begin == row.function.begin) continue;
    const bool continues = last != nullptr && row.function.is_part && last->end == row.function.begin &&
                           row.parent >= last->begin && row.parent < last->end;
    if (continues) {
      last->end = row.function.end;
    } else {
      found.push_back(row.function);
    }
  }
  return found;
}

}  // namespace ptkit::code::image
