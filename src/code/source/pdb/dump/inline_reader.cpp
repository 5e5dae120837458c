#include "code/source/pdb/dump/inline_reader.h"

#include "code/source/pdb/dump/keys.h"
#include "code/source/source_info.h"

namespace ptkit::code::pdb {
namespace {

std::optional<std::uint32_t> number_in(std::string_view text, std::string_view mark, int base = 10) noexcept {
  const auto number = number_after(text, mark, base);
  return number && *number <= UINT32_MAX ? std::optional(static_cast<std::uint32_t>(*number)) : std::nullopt;
}

}  // namespace

bool InlineReader::take(std::string_view text) {
  text_.take(text, *this);
  return !is_unknown_ && !memory_.is_spent() && !sections.is_rearranged();
}

std::string InlineReader::problem() const {
  if (memory_.is_spent()) return "it has more inlined calls than a file of its size should";
  if (sections.is_rearranged())
    return "its addresses are those of code that was rearranged afterwards (OMAP)";
  if (is_unknown_ || site_rows_) return "llvm-pdbutil lists inlined calls in a form that is not known";
  if (sections.empty() || !has_symbols_) return "llvm-pdbutil lists neither sections nor symbols of it";
  return {};
}

Inlinee InlineReader::inlinee(std::uint32_t module, std::uint32_t number) const {
  const auto found = inlinees_.find(key_of(module, number));
  return found == inlinees_.end() ? Inlinee{} : found->second;
}

void InlineReader::begin_part(std::string_view title) {
  finish_site();
  open_ = Open::OTHER;
  scopes_.clear();
  function_.reset();
  part_ = Part::OTHER;
  if (title == "Types (IPI Stream)") part_ = Part::IDS;
  if (title == "Inlinee Lines") part_ = Part::INLINEES;
  if (title == "Symbols") part_ = Part::SYMBOLS;
  if (sections.begin_part(title)) part_ = Part::SECTIONS;
  has_symbols_ = has_symbols_ || part_ == Part::SYMBOLS;
}

void InlineReader::read_line(std::string_view line) {
  constexpr std::string_view kModule = "Mod ";
  if (part_ == Part::IDS) ids.read_line(line);
  if (part_ == Part::SECTIONS) sections.read_line(line);
  if (part_ != Part::SYMBOLS && part_ != Part::INLINEES) return;
  const std::string_view text = trim(line);
  if (text.starts_with(kModule)) {
    finish_site();
    open_ = Open::OTHER;
    scopes_.clear();
    function_.reset();
    module_ = number_in(text, kModule).value_or(module_);
  } else if (part_ == Part::SYMBOLS) {
    read_symbol(text);
  } else {
    read_inlinee(text);
  }
}

// "0x1000 |     3 | /src/a.c (MD5: 1A41...)"; lines below it are of other files that the function is in.
void InlineReader::read_inlinee(std::string_view text) {
  constexpr std::string_view kMark = "|";
  const std::size_t line_at = text.find(kMark);
  const std::size_t path_at = line_at == std::string_view::npos ? line_at : text.find(kMark, line_at + 1);
  if (!text.starts_with("0x") || path_at == std::string_view::npos) return;
  const auto number = whole_number(trim(text.substr(2, line_at - 2)), 16);
  const auto line = whole_number(trim(text.substr(line_at + 1, path_at - line_at - 1)), 10);
  if (!number || !line || !memory_.take(kEntryBytes)) return;
  const std::string_view path = path_in(trim(text.substr(path_at + 1)));
  inlinees_.try_emplace(key_of(module_, *number),
                        Inlinee{texts_.number(std::string(path).c_str(), memory_), *line});
}

void InlineReader::read_symbol(std::string_view text) {
  if (const Record record = record_of(text); !record.kind.empty()) {
    begin_record(record.offset, record.kind);
  } else if (open_ == Open::PROCEDURE) {
    is_unknown_ = is_unknown_ || !read_procedure(text);
    open_ = Open::OTHER;
  } else if (open_ == Open::SITE) {
    is_unknown_ = is_unknown_ || !read_site(text);
  } else if (open_ == Open::ANNOTATIONS && !text.empty()) {
    is_unknown_ = is_unknown_ || !read_annotation(text);
  }
}

void InlineReader::begin_record(std::uint32_t offset, std::string_view kind) {
  finish_site();
  record_ = offset;
  while (!scopes_.empty() && scopes_.back().end <= offset) scopes_.pop_back();
  open_ = Open::OTHER;
  if (is_procedure(kind)) open_ = Open::PROCEDURE;
  if (kind == "S_INLINESITE") open_ = scopes_.empty() ? Open::LEFT_OUT : Open::SITE;
}

bool InlineReader::read_procedure(std::string_view text) {
  const auto end = number_in(text, ", end = ");
  const std::size_t place = text.find("addr = ");
  if (!end || place == std::string_view::npos) return false;
  const auto section = number_in(text.substr(place), "addr = ");
  const auto offset = number_in(text.substr(place), ":");
  const auto size = number_in(text.substr(place), "code size = ");
  if (!section || !offset || !size) return false;
  scopes_.assign(1, {*end, code::source::kNone});
  function_ = {module_, *section, *offset, *size, 0};
  return true;
}

bool InlineReader::read_site(std::string_view text) {
  const auto inlinee = number_in(text, "inlinee = 0x", 16);
  const auto end = number_in(text, ", end = ");
  if (!text.starts_with("inlinee = 0x") || !inlinee || !end) return false;
  const Scope caller = scopes_.back();
  if (*end <= record_ || *end > caller.end) return false;  // it is not within the other one
  const std::uint32_t level = caller.site == code::source::kNone ? 1 : sites[caller.site].level + 1;
  is_deep = is_deep || level > code::source::kMostLevels;
  open_ = Open::LEFT_OUT;
  if (level > code::source::kMostLevels) return true;
  if (!memory_.take(sizeof(ReadSite) + sizeof(ReadFunction))) return true;
  const auto number = static_cast<std::uint32_t>(sites.size());
  if (function_) {
    function_->first_site = number;
    functions.push_back(*function_);
    function_.reset();
  }
  sites.push_back({caller.site, level, *inlinee, static_cast<std::uint32_t>(rows.size())});
  scopes_.push_back({*end, number});
  site_rows_.emplace(functions.back().size, rows);
  open_ = Open::ANNOTATIONS;
  return true;
}

bool InlineReader::read_annotation(std::string_view text) {
  const auto annotation = annotation_in(text);
  if (!annotation || !memory_.take(2 * sizeof(SiteRow))) return annotation.has_value();
  has_files = has_files || annotation->file;
  site_rows_->add(*annotation);
  return true;
}

void InlineReader::finish_site() {
  if (site_rows_) site_rows_->finish();
  site_rows_.reset();
}

}  // namespace ptkit::code::pdb
