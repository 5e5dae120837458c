#include "code/image/kallsyms.h"

#include <algorithm>
#include <charconv>

namespace ptkit::code::image {

namespace {

// Removes and returns the text up to the next of these characters. Removes the character, too.
std::string_view take_until(std::string_view& text, std::string_view ends) noexcept {
  const std::size_t end = std::min(text.find_first_of(ends), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

// "ffffffff81000000 T _stext" or "ffffffffc0000000 t work\t[module]".
bool take_line(std::string_view line, KernelSymbol& out) noexcept {
  const std::string_view address = take_until(line, " \t");
  const std::string_view type = take_until(line, " \t");
  out.name = take_until(line, " \t");
  out.module = take_until(line, " \t");
  const char* const end = address.data() + address.size();
  const auto [parsed, error] = std::from_chars(address.data(), end, out.address, 16);
  if (error != std::errc{} || parsed != end || type.size() != 1 || out.name.empty()) return false;
  out.type = type.front();
  return true;
}

}  // namespace

bool KernelSymbols::next(KernelSymbol& out) noexcept {
  while (!rest_.empty()) {
    if (take_line(take_until(rest_, "\n"), out)) return true;
  }
  return false;
}

}  // namespace ptkit::code::image
