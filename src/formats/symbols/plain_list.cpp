// Lists with a symbol on each line: `nm` in its three formats (BSD, POSIX, System V), also with sizes;
// System.map and /proc/kallsyms, which are as nm prints; perf-PID.map; and "address name".
#include <algorithm>
#include <array>

#include "formats/symbols/readers.h"
#include "formats/symbols/text.h"

namespace ptkit::formats::symbols {
namespace {

struct PlainSymbol {
  std::string_view name;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  char type = 't';  // nm's letter
  bool of_module = false;
};

using Symbol = std::optional<PlainSymbol>;

constexpr char kUndefined = 'U';

bool is_type(std::string_view word) noexcept {
  return word.size() == 1 &&
         std::string_view("ABCDGINRSTUVWabcdginprstuvw-?").find(word[0]) != std::string_view::npos;
}

// nm prints addresses in 8 or 16 digits.
std::optional<std::uint64_t> padded_number(std::string_view word) noexcept {
  return word.size() == 8 || word.size() == 16 ? hex_number(word) : std::nullopt;
}

// What follows the name: file and line (nm -l), the kernel module (kallsyms), the version (nm -D).
void clean_name(PlainSymbol& symbol) noexcept {
  std::string_view& name = symbol.name;
  symbol.of_module = name.ends_with(']') && name.find("\t[") != std::string_view::npos;
  name = trim(name.substr(0, name.find('\t')));
  const std::size_t at = name.find('@', 1);
  const bool is_mangled = name.starts_with('?');  // MSVC's names have such signs
  if (at == std::string_view::npos || is_mangled) return;
  const std::string_view version = name.substr(name.find_first_not_of('@', at) == std::string_view::npos
                                                   ? name.size()
                                                   : name.find_first_not_of('@', at));
  const bool is_version = !version.empty() && (version[0] < '0' || version[0] > '9');
  if (is_version) name = name.substr(0, at);
}

// ADDRESS [SIZE] TYPE name. With -S, symbols that have no size are printed without.
Symbol as_bsd(std::string_view line) {
  const auto address = padded_number(take_word(line));
  std::string_view type = take_word(line);
  const auto size = padded_number(type);
  if (size) type = take_word(line);
  if (!address || !is_type(type) || line.empty()) return std::nullopt;
  return PlainSymbol{line, *address, size.value_or(0), type[0], false};
}

Symbol as_posix(std::string_view line) {
  PlainSymbol symbol;
  symbol.name = take_word(line);
  const std::string_view type = take_word(line);
  const std::string_view value = take_word(line);
  const std::string_view size = take_word(line);
  if (symbol.name.empty() || !is_type(type) || !line.empty()) return std::nullopt;
  if ((!value.empty() && !hex_number(value)) || (!size.empty() && !hex_number(size))) return std::nullopt;
  symbol.address = hex_number(value).value_or(0);
  symbol.size = hex_number(size).value_or(0);
  symbol.type = value.empty() ? kUndefined : type[0];
  return symbol;
}

Symbol as_system_v(std::string_view line) {
  std::array<std::string_view, 5> fields;  // name, value, class, type, size
  for (std::string_view& field : fields) {
    const std::size_t end = line.find('|');
    if (end == std::string_view::npos) return std::nullopt;
    field = trim(line.substr(0, end));
    line.remove_prefix(end + 1);
  }
  if (fields[0].empty() || !is_type(fields[2])) return std::nullopt;
  const auto address = hex_number(fields[1]);
  return PlainSymbol{fields[0], address.value_or(0), hex_number(fields[4]).value_or(0),
                     address ? fields[2][0] : kUndefined, false};
}

// START SIZE name, in hexadecimal.
Symbol as_perf_map(std::string_view line) {
  const auto address = hex_number(take_word(line));
  const auto size = hex_number(take_word(line));
  if (!address || !size || line.empty()) return std::nullopt;
  return PlainSymbol{line, *address, *size, 't', false};
}

Symbol as_pair(std::string_view line) {
  const auto address = hex_number(take_word(line));
  const std::string_view name = take_word(line);
  if (!address || name.empty() || !line.empty()) return std::nullopt;
  return PlainSymbol{name, *address, 0, 't', false};
}

struct PlainForm {
  const char* kind;
  Symbol (*parse)(std::string_view line);
  bool is_nm;
};

// Of two that fit equally many lines, the first one is taken.
constexpr std::array kPlainForms{
    PlainForm{"output of nm", &as_bsd, true},
    PlainForm{"output of nm -f sysv", &as_system_v, true},
    PlainForm{"output of nm -P", &as_posix, true},
    PlainForm{"map of JIT code by perf", &as_perf_map, false},
    PlainForm{"list of addresses and names", &as_pair, false},
};

// Lines of nm without an address: symbols of other files, names of files.
bool is_without_address(std::string_view line) noexcept {
  if (line.ends_with(':')) return true;
  const std::string_view type = take_word(line);
  return is_type(type) && !line.empty();
}

// The form that fits most of the first lines; null if none fits half of them. Stripped files have symbols
// without an address only.
const PlainForm* form_of(std::string_view text) {
  constexpr std::size_t kLooked = 4096;
  std::array<std::size_t, kPlainForms.size()> fits{};
  std::size_t lines = 0;
  std::size_t without_address = 0;
  while (!text.empty() && lines < kLooked) {
    const std::string_view line = trim(take_line(text));
    if (line.empty() || line.starts_with('#')) continue;
    ++lines;
    if (is_without_address(line)) ++without_address;
    for (std::size_t i = 0; i < kPlainForms.size(); ++i) fits[i] += kPlainForms[i].parse(line) ? 1U : 0U;
  }
  fits[0] += without_address;
  const auto best = std::ranges::max_element(fits);
  const PlainForm& form = kPlainForms[static_cast<std::size_t>(best - fits.begin())];
  return *best != 0 && *best * 2 >= lines ? &form : nullptr;
}

bool is_code(char type) noexcept { return std::string_view("tTwWi").find(type) != std::string_view::npos; }

}  // namespace

ReadList read_plain_list(std::string_view text) {
  const PlainForm* const form = form_of(text);
  if (form == nullptr) return {};
  SymbolList list{.kind = form->kind};
  std::uint64_t highest = 0;
  while (!text.empty()) {
    auto symbol = form->parse(trim(take_line(text)));
    if (!symbol) continue;
    clean_name(*symbol);
    note_base(list, symbol->name, symbol->address);
    if (!is_code(symbol->type) || symbol->name.empty()) continue;
    if (symbol->of_module) list.at_run_time = true;  // kallsyms
    highest = std::max(highest, symbol->address);
    list.symbols.push_back({std::string(symbol->name), symbol->address, symbol->size});
  }
  if (!form->is_nm) list.at_run_time = form->parse == &as_perf_map;
  if (list.symbols.empty())
    return {std::nullopt,
            "is " + list.kind + " and lists no function with an address; nm -D has those of stripped files"};
  if (highest == 0)
    return {std::nullopt,
            "has the address 0 for each symbol: the kernel hides them; read /proc/kallsyms as root, or set "
            "kernel.kptr_restrict to 0"};
  return {std::move(list), {}};
}

}  // namespace ptkit::formats::symbols
