#include "code/source/pdb/dump/line_reader.h"

#include <algorithm>

namespace ptkit::code::pdb {
namespace {

// Takes a hexadecimal number and the sign behind it.
std::optional<std::uint32_t> take_number(std::string_view& text, std::string_view sign) noexcept {
  const std::size_t end = text.find(sign);
  if (end == std::string_view::npos) return std::nullopt;
  const auto number = whole_number(text.substr(0, end), 16);
  text.remove_prefix(end + sign.size());
  return number;
}

}  // namespace

bool LineReader::take(std::string_view text) {
  text_.take(text, *this);
  return !is_unknown_ && !memory_.is_spent() && !sections_.is_rearranged();
}

std::string LineReader::problem() const {
  if (memory_.is_spent()) return "it has more lines than a file of its size should";
  if (sections_.is_rearranged())
    return "its addresses are those of code that was rearranged afterwards (OMAP)";
  if (is_unknown_ || !unknown_.empty() || expected_ != 0)
    return "llvm-pdbutil lists lines in a form that is not known";
  if (sections_.empty() || !has_lines_) return "llvm-pdbutil lists neither sections nor lines of it";
  return {};
}

void LineReader::begin_part(std::string_view title) {
  unknown_.clear();  // it was the title
  is_unknown_ = is_unknown_ || expected_ != 0;
  part_ = sections_.begin_part(title) ? Part::SECTIONS : title == "Lines" ? Part::LINES : Part::OTHER;
  has_lines_ = has_lines_ || part_ == Part::LINES;
}

void LineReader::read_line(std::string_view line) {
  if (part_ == Part::SECTIONS) sections_.read_line(line);
  const std::string_view text = trim(line);
  if (part_ != Part::LINES || is_unknown_ || text.empty()) return;
  if (!unknown_.empty()) {
    is_unknown_ = true;
  } else if (expected_ != 0) {
    is_unknown_ = !read_entries(text);
  } else if (text.starts_with("Mod ")) {
    file_ = code::source::kNone;
  } else if (!line.starts_with(' ') && text.ends_with(')')) {
    begin_file(text);
  } else if (!read_head(text)) {
    unknown_ = text;
  }
}

void LineReader::begin_file(std::string_view line) {
  file_ = paths_.number(std::string(path_in(line)).c_str(), memory_);
}

bool LineReader::read_head(std::string_view line) {
  constexpr std::string_view kEntries = "line/addr entries = ";
  constexpr std::string_view kColumns = "line/column/addr entries = ";
  const auto section = take_number(line, ":");
  const auto begin = take_number(line, "-");
  const auto end = take_number(line, ", ");
  if (!section || !begin || !end || *begin > *end) return false;
  if (!line.starts_with(kEntries) && !line.starts_with(kColumns)) return false;
  const auto count = whole_number(line.substr(line.rfind(' ') + 1), 10);
  if (!count) return false;
  expected_ = *count;
  next_ = {*section, *begin, *end, {}};
  return true;
}

// Lines of one contribution in several files follow each other; where a function begins, it has one line.
bool LineReader::goes_on(std::uint32_t first) const {
  if (contributions_.empty()) return false;
  const Contribution& last = contributions_.back();
  if (last.section != next_->section || last.begin != next_->begin || last.end != next_->end) return false;
  const auto is_begin = [&](const Row& row) { return row.address == last.begin; };
  return first != last.begin || std::ranges::none_of(last.rows, is_begin);
}

bool LineReader::read_entries(std::string_view line) {
  while (!line.empty()) {
    const std::string_view number = take_word(line);
    const auto at = whole_number(take_word(line), 16);
    const bool is_hidden = number == "NSI" || number == "ASI";
    const auto source_line = is_hidden ? std::optional(std::uint32_t{0}) : whole_number(number, 10);
    if (!at || !source_line || expected_ == 0) return false;
    --expected_;
    if (!memory_.take(sizeof(Row) + (next_ ? sizeof(Contribution) : 0))) return true;
    if (next_ && !goes_on(*at)) contributions_.push_back(*next_);
    next_.reset();
    contributions_.back().rows.push_back({*at, file_, *source_line});
    std::string_view rest = line;
    if (take_word(rest) == "!") line = rest;
    line = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  }
  return true;
}

std::vector<Row> LineReader::rows() {
  struct Placed {
    std::uint32_t address = 0;
    Contribution* contribution = nullptr;
  };
  std::vector<Placed> placed;
  for (Contribution& one : contributions_) {
    const auto address = sections_.code_address(one.section, one.begin);
    if (!address || one.end - one.begin > UINT32_MAX - *address) continue;
    std::ranges::stable_sort(one.rows, {}, &Row::address);
    placed.push_back({*address, &one});
  }
  std::ranges::stable_sort(placed, {}, &Placed::address);
  std::vector<Row> rows;
  std::uint32_t reached = 0;
  for (const auto& [address, one] : placed) {
    const std::uint32_t begin = one->begin;
    std::vector<Row> own;
    for (std::size_t i = 0; i < one->rows.size(); ++i) {
      const Row& row = one->rows[i];
      if (row.address < begin || row.address >= one->end) continue;
      const bool is_next = i != 0 && one->rows[i - 1].address == row.address;
      const std::uint32_t at = own.empty() ? address : row.address - begin + address + (is_next ? 1 : 0);
      add_row(own, {at, row.file, row.line});
    }
    const std::uint32_t end = address + (one->end - begin);
    add_rows(rows, own, std::max(address, reached), end);
    reached = std::max(reached, end);
  }
  rows.shrink_to_fit();
  return rows;
}

}  // namespace ptkit::code::pdb
