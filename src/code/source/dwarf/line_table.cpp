#include "code/source/dwarf/line_table.h"

#include <dwarf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "code/source/near_row.h"

namespace ptkit::code::dwarf {
namespace {

constexpr std::uint64_t kLongestProgram = std::uint64_t{16} << 20U;  // bytes
constexpr std::uint64_t kBytesOfARow = 100;                          // libdw has a row for each byte at most
constexpr std::uint64_t kMostPaths = std::uint64_t{1} << 30U;        // bytes of all paths of a line table
constexpr std::uint64_t kLeastFile = 2;                              // bytes of a file in a header

// The lengths of a line number program: what libdw is going to need depends on them. DWARF 5, section 6.2.4.
struct ProgramSize {
  std::uint64_t whole = 0;
  std::uint64_t header = 0;
  bool has_sections = false;  // from version 5 on, strings may be in other sections
};

std::optional<ProgramSize> program_size(base::Bytes programs, std::uint64_t offset) noexcept {
  constexpr std::size_t kMostFields = 24;  // up to header_length, of any version
  if (offset > programs.size() || programs.size() - offset < kMostFields) return std::nullopt;
  const std::uint8_t* at = programs.data() + offset;
  ProgramSize size{base::load_le<4>(at)};
  const bool wide = size.whole == 0xFFFF'FFFF;  // the 64-bit format
  at += 4;
  if (wide) {
    size.whole = base::load_le<8>(at);
    at += 8;
  }
  const auto version = base::load_le<2>(at);
  size.has_sections = version >= 5;
  at += size.has_sections ? 4 : 2;
  size.header = wide ? base::load_le<8>(at) : base::load_le<4>(at);
  return size;
}

// Where the compiler ran; null: not known.
const char* folder_of(Dwarf_Die& unit) {
  Dwarf_Attribute attribute;
  return dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
}

// libdw keeps a row in memory for each byte of a program at most, and for each file the path of the unit's
// folder, the file's folder and the file. A small file can have very many of long ones. Returns the most
// bytes of rows, which are taken then; 0: the table is not to be read.
std::uint64_t row_bytes(Dwarf_Die& unit, Context& context) {
  Dwarf_Attribute attribute;
  Dwarf_Word offset = 0;
  if (dwarf_formudata(dwarf_attr_integrate(&unit, DW_AT_stmt_list, &attribute), &offset) != 0) return 0;
  const auto size = program_size(context.line_programs, offset);
  if (!size || size->whole > kLongestProgram || size->header > size->whole) return 0;
  const char* const folder = folder_of(unit);
  const auto header = context.line_programs.subspan(
      offset, std::min<std::size_t>(size->header, context.line_programs.size() - offset));
  std::uint64_t longest = longest_string(header);
  if (size->has_sections) longest = std::max(longest, context.longest_section_string());
  const std::uint64_t path = (folder == nullptr ? 0 : std::strlen(folder)) + 2 * longest;
  if (size->header / kLeastFile * path > kMostPaths) return 0;
  const std::uint64_t bytes = size->whole * kBytesOfARow;
  return context.budget.take(size->whole) && context.memory.take(bytes) ? bytes : 0;
}

}  // namespace

LineTable::LineTable(Dwarf_Die& unit, Context& context) {
  const std::uint64_t taken = row_bytes(unit, context);
  if (taken == 0) return;
  Dwarf_Lines* lines = nullptr;
  std::size_t count = 0;
  if (dwarf_getsrclines(&unit, &lines, &count) != 0) count = 0;
  context.memory.put_back(taken - std::min<std::uint64_t>(taken, count * kBytesOfARow));
  Dwarf_Files* files = nullptr;
  std::size_t file_count = 0;
  if (dwarf_getsrcfiles(&unit, &files, &file_count) != 0) return;
  read_files(files, file_count, folder_of(unit), context);
  read_rows(lines, count);
}

void LineTable::read_files(Dwarf_Files* files, std::size_t count, const char* folder, Context& context) {
  files_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const char* const path = dwarf_filesrc(files, i, nullptr, nullptr);
    if (path != nullptr && !context.memory.take(std::strlen(path))) return;
    // Before version 5, libdw adds the unit's folder.
    const bool is_whole = path == nullptr || *path == '/' || folder == nullptr;
    const std::string whole = is_whole ? std::string() : std::string(folder) + '/' + path;
    const std::uint32_t text = context.strings.number(is_whole ? path : whole.c_str(), context.budget);
    files_.push_back(context.strings.text(text));
  }
}

void LineTable::read_rows(Dwarf_Lines* lines, std::size_t count) {
  rows_.reserve(count / 2);
  for (std::size_t i = 0; i < count; ++i) {
    Dwarf_Line* const line = dwarf_onesrcline(lines, i);
    Dwarf_Addr address = 0;
    bool ends = false;
    int number = 0;
    Dwarf_Files* files = nullptr;
    std::size_t index = 0;
    if (dwarf_lineaddr(line, &address) != 0 || dwarf_lineendsequence(line, &ends) != 0) continue;
    LineRow row{address, code::source::kNone, 0};
    if (!ends && dwarf_lineno(line, &number) == 0 && dwarf_line_file(line, &files, &index) == 0)
      row = {address, file(index), static_cast<std::uint32_t>(number)};
    if (!rows_.empty() && rows_.back().address == address) {
      rows_.back() = row;  // of several rows at an address, the last one says where its code is from
    } else if (rows_.empty() || rows_.back().file != row.file || rows_.back().line != row.line) {
      rows_.push_back(row);
    }
  }
  rows_.shrink_to_fit();
}

LineRow LineTable::at(std::uint64_t address, std::size_t& near) const noexcept {
  const std::size_t row = code::source::near_row(std::span(rows_), address, near);
  if (row == rows_.size()) return {};
  near = row;
  return rows_[row];
}

LineRow LineTable::at(std::uint64_t address) const noexcept {
  std::size_t near = rows_.size();
  return at(address, near);
}

}  // namespace ptkit::code::dwarf
