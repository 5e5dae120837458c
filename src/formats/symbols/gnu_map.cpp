// Maps of GNU ld (-Map): output sections begin a line, symbols stand behind an address.
//
//   .text           0x0000000000001040      0x1a5
//    .text          0x0000000000001139       0x22 main.o
//                   0x0000000000001139                main
#include "formats/symbols/readers.h"
#include "formats/symbols/text.h"

namespace ptkit::formats::symbols {
namespace {

constexpr std::string_view kBegin = "Linker script and memory map";
constexpr std::string_view kProvided = "PROVIDE (";

bool holds_code(std::string_view section) noexcept {
  return section.find("text") != std::string_view::npos || section.starts_with(".plt") ||
         section == ".init" || section == ".fini";
}

// What stands behind an address: a name, or a size, an assignment, an assertion.
bool is_name(std::string_view text) noexcept {
  return !text.empty() && !text.starts_with("0x") && !text.starts_with('.') && !text.starts_with('[') &&
         !text.starts_with("ASSERT") && text.find(" = ") == std::string_view::npos;
}

void read_assignment(SymbolList& list, std::string_view text, std::uint64_t address) {
  if (text.starts_with(kProvided)) text.remove_prefix(kProvided.size());
  if (text.find(" = ") != std::string_view::npos) note_base(list, take_word(text), address);
}

}  // namespace

ReadList read_gnu_map(std::string_view text) {
  const std::size_t begin = text.find(kBegin);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin + kBegin.size());
  SymbolList list{.kind = "map of GNU ld"};
  bool is_code = false;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (line.empty()) continue;
    if (kBlanks.find(line.front()) == std::string_view::npos) {
      is_code = holds_code(take_word(line));
      continue;
    }
    const auto address = hex_number(take_word(line));
    if (!address || line.empty()) continue;
    read_assignment(list, line, *address);
    note_base(list, line, *address);
    if (is_code && is_name(line)) list.symbols.push_back({std::string(trim(line)), *address, 0});
  }
  if (list.symbols.empty()) return {std::nullopt, "is a map of GNU ld without a function"};
  return {std::move(list), {}};
}

}  // namespace ptkit::formats::symbols
