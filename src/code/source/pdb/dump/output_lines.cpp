#include "code/source/pdb/dump/output_lines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace ptkit::code::pdb {

std::string_view trim(std::string_view text) noexcept {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::optional<std::uint64_t> number_after(std::string_view line, std::string_view mark, int base) noexcept {
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = line.data() + line.size();
  const auto read = std::from_chars(line.data() + at + mark.size(), end, number, base);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<std::uint32_t> whole_number(std::string_view text, int base) noexcept {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number, base);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

std::string_view take_word(std::string_view& text) noexcept {
  constexpr std::string_view kBlanks = " \r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

Record record_of(std::string_view line) noexcept {
  constexpr std::string_view kMark = " | ";
  const std::string_view text = trim(line);
  const std::size_t at = text.find(kMark);
  if (at == std::string_view::npos || !text.substr(at + kMark.size()).starts_with("S_")) return {};
  const auto offset = whole_number(text.substr(0, at), 10);
  if (!offset) return {};
  const std::string_view kind = text.substr(at + kMark.size());
  return {*offset, kind.substr(0, kind.find(' '))};
}

bool is_procedure(std::string_view kind) noexcept {
  constexpr std::array<std::string_view, 6> kProcedures = {
      "S_GPROC32", "S_LPROC32", "S_GPROC32_ID", "S_LPROC32_ID", "S_LPROC32_DPC", "S_LPROC32_DPC_ID"};
  return std::ranges::find(kProcedures, kind) != kProcedures.end();
}

std::string_view quoted(std::string_view line) noexcept {
  const std::size_t begin = line.find('`');
  const std::size_t end = line.rfind('`');
  return begin == end ? std::string_view{} : line.substr(begin + 1, end - begin - 1);
}

std::string_view path_in(std::string_view line) noexcept {
  return line.starts_with('(') ? std::string_view{} : line.substr(0, line.rfind(" ("));
}

}  // namespace ptkit::code::pdb
