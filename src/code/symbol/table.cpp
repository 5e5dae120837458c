#include "code/symbol/table.h"

#include <algorithm>
#include <limits>

#include "base/paths.h"
#include "base/system/name_pattern.h"
#include "code/image/files/code_file.h"
#include "code/image/generated_name.h"
#include "code/symbol/names/demangle.h"
#include "code/symbol/names/name_filter.h"
#include "code/symbol/names/short_name.h"

namespace ptkit::code::symbol {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

std::uint64_t end_of(const trace::SymbolEntry& entry) noexcept {
  return entry.size > kMax - entry.file_offset ? kMax : entry.file_offset + entry.size;
}

// The return type ends at the last space outside brackets. Names of operators contain spaces.
std::string_view without_return_type(std::string_view name) noexcept {
  if (name.find("operator") != std::string_view::npos) return name;
  int depth = 0;
  for (std::size_t at = name.size(); at-- > 0;) {
    const char letter = name[at];
    if (letter == '>' || letter == ')' || letter == '}') ++depth;
    if (letter == '<' || letter == '(' || letter == '{') --depth;
    if (letter == ' ' && depth == 0) return name.substr(at + 1);
  }
  return name;
}

bool is_exactly(std::string_view raw, std::string_view whole, std::string_view wanted) noexcept {
  return raw == wanted || whole == wanted || without_variant(whole) == wanted;
}

// Whether the short form of a whole name is `wanted`, or ends with it.
bool has_short_name(std::string_view whole, std::string_view wanted, bool by_part) {
  const std::size_t scope = wanted.rfind("::");
  if (whole.find(scope == std::string_view::npos ? wanted : wanted.substr(scope + 2)) ==
      std::string_view::npos)
    return false;
  const std::string short_form = short_name(whole);
  return by_part ? ends_with_part(without_variant(short_form), wanted) || ends_with_part(short_form, wanted)
                 : short_form == wanted || without_variant(short_form) == wanted;
}

// True if the pattern matches one of the names that Table::named() compares.
bool matches_any_form(const std::string& pattern, std::string_view raw, std::string_view name) {
  if (base::matches_pattern(pattern, std::string(raw))) return true;
  if (name != raw && base::matches_pattern(pattern, std::string(name))) return true;
  const std::string_view called = without_arguments(name);
  if (called != name && base::matches_pattern(pattern, std::string(called))) return true;
  const std::string short_form = short_name(name);
  return short_form != called && short_form != name && base::matches_pattern(pattern, short_form);
}

}  // namespace

Table::Table(const trace::ImageFile& file)
    : module_(base::last_part(base::without_mark(file.path))),
      functions_(bounds::UnwindTable::of(file)),
      entries_(file.contents.size() != 0 ? code::image::read_symbols(file.contents.bytes(), true)
                                         : file.symbols) {
  arrange();
}

Table::Table(std::vector<trace::SymbolEntry> entries) : entries_(std::move(entries)) { arrange(); }

// Entries without a name and a size are ends of sections. Others without a name say nothing.
void Table::take_section_ends() {
  for (const trace::SymbolEntry& entry : entries_) {
    if (entry.name.empty() && entry.size == 0) section_ends_.push_back(entry.file_offset);
  }
  std::ranges::sort(section_ends_);
  std::erase_if(entries_, [](const trace::SymbolEntry& entry) { return entry.name.empty(); });
}

void Table::arrange() {
  take_section_ends();
  std::ranges::stable_sort(entries_, {}, &trace::SymbolEntry::file_offset);
  if (!module_.empty()) add_functions();
  std::uint64_t farthest = 0;
  for (const trace::SymbolEntry& entry : entries_) {
    farthest = std::max(farthest, end_of(entry));
    reach_.push_back(farthest);
  }
  names_.resize(entries_.size());
}

// Adds functions that begin at no symbol and in none with a size. Labels inside keep their bytes.
void Table::add_functions() {
  const std::size_t symbols = entries_.size();
  std::size_t next = 0;       // the first symbol at or after the function's begin
  std::uint64_t reached = 0;  // maximum end of those before it
  for (std::size_t i = 0; i < functions_.size(); ++i) {
    const bounds::FunctionSpan function = functions_.function(i);
    for (; next < symbols && entries_[next].file_offset < function.begin; ++next)
      reached = std::max(reached, end_of(entries_[next]));
    const std::uint64_t at = next < symbols ? entries_[next].file_offset : kMax;
    if (reached <= function.begin && at != function.begin)
      entries_.push_back({{}, function.begin, std::min(at, function.end) - function.begin});
  }
  const auto middle = entries_.begin() + static_cast<std::ptrdiff_t>(symbols);
  std::ranges::inplace_merge(entries_, middle, {}, &trace::SymbolEntry::file_offset);
}

std::optional<Table::Extent> Table::find(std::uint64_t offset) const noexcept {
  const auto above = std::upper_bound(
      entries_.begin(), entries_.end(), offset,
      [](std::uint64_t at, const trace::SymbolEntry& entry) { return at < entry.file_offset; });
  const auto count = static_cast<std::size_t>(above - entries_.begin());
  std::optional<std::size_t> best;
  for (std::size_t i = count; i-- > 0 && reach_[i] > offset;) {
    if (best && entries_[i].file_offset != entries_[*best].file_offset) break;
    if (end_of(entries_[i]) > offset) best = i;
  }
  if (best) return extent(*best);
  if (count == 0) return std::nullopt;
  // No symbol with a size contains the offset. The nearest symbols before it do if none of them has a size.
  std::size_t first = count - 1;
  const std::uint64_t nearest = entries_[first].file_offset;
  while (first > 0 && entries_[first - 1].file_offset == nearest) --first;
  for (std::size_t i = first; i < count; ++i) {
    if (entries_[i].size != 0) return std::nullopt;
  }
  const Extent label = extent(first);
  // Of a label at the last address, no byte is counted.
  const bool is_inside = offset == label.offset || offset - label.offset < label.size;
  return is_inside ? std::optional(label) : std::nullopt;
}

// Up to the next symbol, no other one begins, and those that end before this one are further out.
std::uint64_t Table::end_of_same(const Extent& extent, std::uint64_t offset) const noexcept {
  const auto next = std::ranges::upper_bound(entries_, offset, {}, &trace::SymbolEntry::file_offset);
  const std::uint64_t end = extent.offset + extent.size;
  return next == entries_.end() ? end : std::min(end, next->file_offset);
}

Table::Extent Table::extent(std::size_t index) const noexcept {
  const trace::SymbolEntry& entry = entries_[index];
  if (entry.size != 0) return {index, entry.file_offset, end_of(entry) - entry.file_offset};
  const auto next = std::upper_bound(
      entries_.begin(), entries_.end(), entry.file_offset,
      [](std::uint64_t at, const trace::SymbolEntry& other) { return at < other.file_offset; });
  const auto function = functions_.function_at(entry.file_offset);
  const auto section_end = std::ranges::upper_bound(section_ends_, entry.file_offset);
  const std::uint64_t end =
      std::min({next == entries_.end() ? kMax : next->file_offset, function ? function->end : kMax,
                section_end == section_ends_.end() ? kMax : *section_end});
  return {index, entry.file_offset, end - entry.file_offset};
}

std::vector<std::size_t> Table::named(std::string_view name, Form form) const {
  std::vector<std::size_t> found;
  const bool is_generated = image::may_be_generated(name);
  const NameFilter filter = NameFilter::of_name(name);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (has_name(i) ? !filter.admits(entries_[i].name) : !is_generated) continue;
    const std::string_view whole = this->name(i);
    const bool by_part = form == Form::LAST_PART;
    bool is_named = !by_part && is_exactly(raw_name(i), whole, name);
    // Short names have no letters that the whole ones lack.
    if (!is_named && form != Form::EXACT && whole.size() > name.size())
      is_named = (!by_part && without_arguments(whole) == name) || has_short_name(whole, name, by_part);
    if (is_named) found.push_back(i);
  }
  return found;
}

std::vector<std::size_t> Table::matching(const std::string& pattern) const {
  std::vector<std::size_t> found;
  const bool is_any = pattern.find_first_not_of('*') == std::string::npos && !pattern.empty();
  const NameFilter filter = NameFilter::of_pattern(pattern);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const std::string_view raw = raw_name(i);
    if (is_any || (filter.admits(raw) && matches_any_form(pattern, raw, name(i)))) found.push_back(i);
  }
  return found;
}

std::string_view Table::name(std::size_t index) const {
  const trace::SymbolEntry& entry = entries_[index];
  if (!entry.name.empty() && !is_mangled(entry.name)) return entry.name;
  const std::lock_guard lock(mutex_);
  auto& name = names_[index];
  if (!name) {
    name = std::make_unique<const std::string>(entry.name.empty() ? generated_name(entry.file_offset)
                                                                  : demangle(entry.name));
  }
  return *name;
}

std::string Table::generated_name(std::uint64_t offset) const {
  return code::image::generated_name(module_, functions_.rva_of(offset).value_or(offset));
}

std::string_view without_arguments(std::string_view name) noexcept {
  // From the last parenthesis (" const" and " [clone .cold]" may follow) back to its opening parenthesis.
  int depth = 0;
  std::size_t begin = std::string_view::npos;
  const std::size_t last = name.rfind(')');
  if (last == std::string_view::npos) return name;
  for (std::size_t at = last + 1; at-- > 0 && begin == std::string_view::npos;) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) begin = at;
  }
  if (begin == std::string_view::npos || begin == 0) return name;
  std::string_view kept = name.substr(0, begin);
  if (kept.ends_with(' ')) return kept.substr(0, kept.size() - 1);  // "f (file.py)"
  if (kept.ends_with(']')) kept = kept.substr(0, kept.find("[abi:"));
  return without_return_type(kept);
}

}  // namespace ptkit::code::symbol
