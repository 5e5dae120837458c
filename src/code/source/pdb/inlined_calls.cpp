#include "code/source/pdb/inlined_calls.h"

#include "code/source/source_info.h"

namespace ptkit::code::pdb {

std::string InlineReader::add(const Stream& stream, const Module& module, const ModuleFiles& files) {
  inlinees_.clear();
  scopes_.clear();
  for (const Subsection& part : files.subsections()) {
    if (part.kind == Subsection::kInlinees && !add_inlinees(Cursor(stream, part.begin, part.end), files))
      return damage_at(stream.number(), part.begin, "lines of inlined functions are cut");
  }
  SymbolRecords records(stream, module);
  for (SymbolRecord record; !memory_.is_spent() && records.next(record);) {
    while (!scopes_.empty() && scopes_.back().end <= record.offset) scopes_.pop_back();
    if (is_procedure(record.kind)) {
      if (!read_function(record, function_)) return records.damage(record, "a function is cut");
      scopes_.assign(1, {function_.end, code::source::kNone});
      has_sites_ = false;
    } else if (record.kind == SymbolKind::INLINE_SITE || record.kind == SymbolKind::INLINE_SITE_2) {
      if (!add_site(record, files))
        return records.damage(record, "an inlined call is cut, or not in its caller");
    }
  }
  return records.problem();
}

// kind of entries; of each the function, its file as an offset in the checksums, its line, and of the second
// kind the number of other files that it is in, and these
bool InlineReader::add_inlinees(Cursor part, const ModuleFiles& files) {
  constexpr std::uint64_t kFileBytes = 4;
  const bool has_files = part.u32() == 1;
  while (part.good() && part.left() != 0 && memory_.take(ModuleFiles::kEntryBytes)) {
    const std::uint32_t function = part.u32();
    const std::uint32_t file = part.u32();
    const std::uint32_t line = part.u32();
    if (has_files) part.skip(part.u32() * kFileBytes);
    if (part.good()) inlinees_.try_emplace(function, Inlinee{files.path(file), line});
  }
  return part.good();
}

// parent, end, function, of the second kind the number of calls, annotations
bool InlineReader::add_site(const SymbolRecord& record, const ModuleFiles& files) {
  Cursor fields(record.fields);
  fields.skip(sizeof(std::uint32_t));
  const std::uint32_t end = fields.u32();
  const std::uint32_t function = fields.u32();
  if (record.kind == SymbolKind::INLINE_SITE_2) fields.skip(sizeof(std::uint32_t));
  if (!fields.good()) return false;
  if (scopes_.empty()) return true;
  const Scope caller = scopes_.back();
  if (end <= record.offset || end > caller.end) return false;
  Site site;
  site.caller = caller.site;
  if (site.caller != code::source::kNone) site.level = tables_.sites[site.caller].level + 1;
  if (!has_sites_ && !begins_function()) {
    scopes_.clear();
    return true;
  }
  if (site.level > code::source::kMostLevels) {
    tables_.is_cut = true;
    return true;
  }
  if (!read_annotations(fields.take(fields.left()), function_.size, rows_)) return false;
  if (!memory_.take(sizeof(Site) + rows_.size() * 2 * sizeof(Row))) return true;
  const auto inlinee = inlinees_.find(function);
  site.name = names_.of_function(function);
  add_rows(site, inlinee == inlinees_.end() ? Inlinee{} : inlinee->second, files);
  scopes_.push_back({end, static_cast<std::uint32_t>(tables_.sites.size())});
  tables_.sites.push_back(site);
  return true;
}

// Whether calls of the function count.
bool InlineReader::begins_function() {
  const auto address = sections_.code_address(function_.section, function_.offset);
  if (!address || function_.size > UINT32_MAX - *address || !known_.insert(*address).second) return false;
  address_ = *address;
  has_sites_ = true;
  return true;
}

void InlineReader::add_rows(Site& site, const Inlinee& inlinee, const ModuleFiles& files) {
  const auto number = static_cast<std::uint32_t>(tables_.sites.size());
  site.declared_line = inlinee.line;
  site.first_row = static_cast<std::uint32_t>(tables_.site_rows.size());
  site.rows = static_cast<std::uint32_t>(rows_.size());
  std::uint32_t begin = 0;
  bool is_inside = false;
  for (const SiteRow& row : rows_) {
    Row added{address_ + row.offset, code::source::kNone, 0};
    if (row.file != SiteRow::kOutside) {
      added.file = row.file == SiteRow::kOwnFile ? inlinee.path : files.path(row.file);
      const std::int64_t line = std::int64_t{inlinee.line} + row.line;
      if (line > 0 && line <= UINT32_MAX) added.line = static_cast<std::uint32_t>(line);
      if (!is_inside) begin = added.address;
    } else if (is_inside) {
      tables_.site_spans.add(begin, std::uint64_t{added.address} - 1, number);
    }
    is_inside = row.file != SiteRow::kOutside;
    tables_.site_rows.push_back(added);
  }
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
