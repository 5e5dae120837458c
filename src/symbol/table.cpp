#include "symbol/table.h"

#include <algorithm>
#include <limits>

#include "image/code_file.h"
#include "symbol/symbols.h"

namespace ptkit::symbol {
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

}  // namespace

Table::Table(const trace::ImageFile& file)
    : entries_(file.contents.size() != 0 ? image::read_symbols(file.contents.bytes()) : file.symbols) {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const auto& a, const auto& b) { return a.file_offset < b.file_offset; });
  std::uint64_t farthest = 0;
  for (const trace::SymbolEntry& entry : entries_) {
    farthest = std::max(farthest, end_of(entry));
    reach_.push_back(farthest);
  }
  names_.resize(entries_.size());
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
  return extent(first);
}

Table::Extent Table::extent(std::size_t index) const noexcept {
  const trace::SymbolEntry& entry = entries_[index];
  if (entry.size != 0) return {index, entry.file_offset, end_of(entry) - entry.file_offset};
  const auto next = std::upper_bound(
      entries_.begin(), entries_.end(), entry.file_offset,
      [](std::uint64_t at, const trace::SymbolEntry& other) { return at < other.file_offset; });
  const std::uint64_t end = next == entries_.end() ? kMax : next->file_offset;
  return {index, entry.file_offset, end - entry.file_offset};
}

std::vector<std::size_t> Table::named(std::string_view name) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (raw_name(i) == name || this->name(i) == name || without_arguments(this->name(i)) == name)
      found.push_back(i);
  }
  return found;
}

std::string_view Table::name(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  auto& name = names_[index];
  if (!name) name = std::make_unique<const std::string>(demangle(raw_name(index)));
  return *name;
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
  if (kept.ends_with(']')) kept = kept.substr(0, kept.find("[abi:"));
  return without_return_type(kept);
}

}  // namespace ptkit::symbol
