// Source lines and inlined calls of a PDB by RVA. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "code/source/no_number.h"
#include "code/source/pdb/debug_streams.h"
#include "code/source/spans.h"
#include "code/source/strings.h"
#include "trace/warning.h"

namespace ptkit::code::pdb {

// Reaches to the next row.
struct Row {
  std::uint32_t address = 0;                 // RVA
  std::uint32_t file = code::source::kNone;  // number of its path; kNone: code without a line
  std::uint32_t line = 0;                    // 0: code that belongs to no line
};

// The row in sorted rows that has an address; without a file, if none has.
[[nodiscard]] Row row_at(std::span<const Row> rows, std::uint64_t address) noexcept;

// Adds a row after the others; of several rows at an address, the last one counts.
void add_row(std::vector<Row>& rows, const Row& row);
// Adds rows for addresses [begin, end), which are above those of the rows in `rows`.
void add_rows(std::vector<Row>& rows, std::span<const Row> from, std::uint32_t begin, std::uint32_t end);

// An inlined call.
struct Site {
  std::uint32_t caller =
      code::source::kNone;                   // number of the call that it is in; kNone: it is in the function
  std::uint32_t level = 1;                   // calls that it is in, itself included
  std::uint32_t name = code::source::kNone;  // number of a text
  std::uint32_t declared_line = 0;           // of its function
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
};

struct Tables {
  code::source::Strings texts;  // names, and paths of files
  std::vector<Row> lines;       // of functions; inlined code has the line of its call
  std::vector<Row> all_lines;   // the same, but inlined code has the line of the innermost function
  std::vector<Site> sites;
  std::vector<Row> site_rows;  // code and lines of each call; code inlined into it has the line of that call
  code::source::Spans site_spans;  // the number of the innermost call
  bool is_cut = false;             // some calls were left out, as they are in too many others
  std::vector<trace::Warning> problems;

  [[nodiscard]] std::span<const Row> rows_of(const Site& site) const noexcept {
    return std::span(site_rows).subspan(site.first_row, site.rows);
  }
};

// Those of the PDB at `path`. `most_bytes`: of memory.
[[nodiscard]] Tables read_tables(const MsfFile& file, const DebugStreams& streams, const std::string& path,
                                 std::uint64_t most_bytes);

}  // namespace ptkit::code::pdb
