#include "code/source/pdb/inlined_calls.h"

#include <unordered_set>

namespace ptkit::code::pdb {
namespace {

class Builder {
 public:
  Builder(Tables& tables, const InlineReader& read, const FindFile& find_file,
          const std::unordered_map<std::uint32_t, std::uint32_t>& classes)
      : tables_(tables), read_(read), find_file_(find_file), classes_(classes) {}

  void add_all() {
    std::unordered_set<std::uint32_t> known;
    for (std::size_t i = 0; i < read_.functions.size(); ++i) {
      const ReadFunction& function = read_.functions[i];
      const bool is_last = i + 1 == read_.functions.size();
      const std::size_t end = is_last ? read_.sites.size() : read_.functions[i + 1].first_site;
      const auto address = read_.sections.code_address(function.section, function.offset);
      // Of equal functions that the linker folded, the first one counts.
      if (!address || function.size > UINT32_MAX - *address || !known.insert(*address).second) continue;
      first_site_ = function.first_site;
      first_added_ = static_cast<std::uint32_t>(tables_.sites.size());
      for (std::size_t site = function.first_site; site < end; ++site) add(site, function, *address);
    }
    tables_.site_spans.finish();
  }

 private:
  void add(std::size_t number, const ReadFunction& function, std::uint32_t address) {
    const ReadSite& read = read_.sites[number];
    const Inlinee inlinee = read_.inlinee(function.module, read.inlinee);
    Site site;
    if (read.caller != code::source::kNone) site.caller = read.caller - first_site_ + first_added_;
    site.level = read.level;
    site.name = name_of(read.inlinee);
    site.declared_line = inlinee.line;
    site.first_row = static_cast<std::uint32_t>(tables_.site_rows.size());
    const bool is_last = number + 1 == read_.sites.size();
    const std::size_t end = is_last ? read_.rows.size() : read_.sites[number + 1].first_row;
    for (std::size_t row = read.first_row; row < end; ++row)
      tables_.site_rows.push_back(row_of(read_.rows[row], inlinee, function.module, address));
    site.rows = static_cast<std::uint32_t>(tables_.site_rows.size()) - site.first_row;
    add_spans(read.first_row, end, address);
    tables_.sites.push_back(site);
  }

  Row row_of(const SiteRow& row, const Inlinee& inlinee, std::uint32_t module, std::uint32_t address) const {
    Row found{address + row.offset, code::source::kNone, 0};
    if (row.file == SiteRow::kOutside) return found;
    found.file = row.file == SiteRow::kOwnFile ? inlinee.path : find_file_(module, row.file);
    const std::int64_t line = std::int64_t{inlinee.line} + row.line;
    if (line > 0 && line <= UINT32_MAX) found.line = static_cast<std::uint32_t>(line);
    return found;
  }

  // The code from a row that is in the call to the next one that is not.
  void add_spans(std::size_t row, std::size_t end, std::uint32_t address) {
    const auto number = static_cast<std::uint32_t>(tables_.sites.size());
    while (row < end) {
      const std::uint32_t first = read_.rows[row].offset;
      while (row < end && read_.rows[row].file != SiteRow::kOutside) ++row;
      if (row == end) return;
      const std::uint32_t after = read_.rows[row++].offset;
      if (first < after)
        tables_.site_spans.add(std::uint64_t{address} + first, std::uint64_t{address} + after - 1, number);
    }
  }

  std::uint32_t name_of(std::uint32_t function) {
    const auto [known, is_new] = names_.try_emplace(function, code::source::kNone);
    if (is_new) known->second = read_.ids.name_of(function, classes_);
    return known->second;
  }

  Tables& tables_;
  const InlineReader& read_;
  const FindFile& find_file_;
  const std::unordered_map<std::uint32_t, std::uint32_t>& classes_;
  std::unordered_map<std::uint32_t, std::uint32_t> names_;  // by function
  std::uint32_t first_site_ = 0;                            // of the present function, as it was read
  std::uint32_t first_added_ = 0;                           // the same, in the tables
};

}  // namespace

void add_inlined_calls(Tables& tables, const InlineReader& read, const FindFile& find_file,
                       const std::unordered_map<std::uint32_t, std::uint32_t>& classes) {
  Builder(tables, read, find_file, classes).add_all();
  tables.is_cut = read.is_deep;
}

void unite_lines(Tables& tables) {
  std::uint32_t reached = 0;
  for (const code::source::Spans::Span& span : tables.site_spans.all()) {
    const auto first = static_cast<std::uint32_t>(span.first);
    const auto end = static_cast<std::uint32_t>(span.last + 1);
    add_rows(tables.all_lines, tables.lines, reached, first);
    add_rows(tables.all_lines, tables.rows_of(tables.sites[span.value]), first, end);
    reached = end;
  }
  add_rows(tables.all_lines, tables.lines, reached, UINT32_MAX);
  tables.all_lines.shrink_to_fit();
}

}  // namespace ptkit::code::pdb
