#include "pdb/output_lines.h"

#include <charconv>
#include <system_error>

namespace ptkit::pdb {

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

}  // namespace ptkit::pdb
