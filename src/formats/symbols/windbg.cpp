// Logs of WinDbg, kd and cdb: what `x` prints of symbols and `lm` of modules, at addresses of the running
// system.
//
//   fffff806`85389310 srv2!Srv2ProcessPacket (void)
//   start             end                 module name
//   fffff806`85380000 fffff806`85450000   srv2       (pdb symbols)          C:\sym\srv2.pdb
#include <algorithm>

#include "formats/symbols/readers.h"
#include "formats/symbols/text.h"

namespace ptkit::formats::symbols {
namespace {

constexpr std::string_view kUnloaded = "Unloaded modules";

// Debuggers print addresses with a backtick between their halves, or in 8 digits.
std::optional<std::uint64_t> printed_address(std::string_view word) noexcept {
  if (word.size() < 8 || word.starts_with("0x")) return std::nullopt;
  return hex_number(word);
}

bool is_program(std::string_view path) noexcept {
  return path.size() > 4 && !path.ends_with(".pdb") && path[path.size() - 4] == '.' &&
         path.find_first_of("()") == std::string_view::npos;
}

class WindbgLog {
 public:
  ReadList read(std::string_view text) {
    while (!text.empty()) read_line(take_line(text));
    list_.at_run_time = true;
    list_.kind = "output of WinDbg";
    if (list_.symbols.empty() && list_.modules.empty()) return {};
    return {std::move(list_), {}};
  }

 private:
  void read_line(std::string_view line) {
    if (trim(line).starts_with(kUnloaded)) is_unloaded_ = true;
    std::string_view rest = line;
    const std::string_view first = take_word(rest);
    if (first == "start" && rest.starts_with("end")) {
      has_modules_ = true;
      is_unloaded_ = false;
      return;
    }
    const auto address = printed_address(first);
    if (!address) return read_detail(trim(line));
    const std::size_t sign = rest.find('!');
    std::string_view more = rest;
    const std::string_view second = take_word(more);
    if (const auto end = printed_address(second); has_modules_ && end && *end > *address) {
      if (!is_unloaded_) read_module(*address, *end, more);
    } else if (sign != std::string_view::npos && sign != 0 && rest.find_first_of(kBlanks) > sign) {
      read_symbol(*address, rest.substr(sign + 1));
    }
  }

  // Functions have arguments behind their name, data a value. Without types, debuggers know neither.
  void read_symbol(std::uint64_t address, std::string_view text) {
    const std::size_t value = text.find(" = ");
    const bool is_data = value != std::string_view::npos && !text.substr(value).starts_with(" = <no type");
    if (is_data) return;
    const std::string_view name = trim(text.substr(0, std::min(text.find(" ("), value)));
    if (!name.empty()) list_.symbols.push_back({std::string(name), address, 0});
  }

  // The name, and the path of the file where `lm` prints that (lm f).
  void read_module(std::uint64_t begin, std::uint64_t end, std::string_view text) {
    const std::string_view name = take_word(text);
    const std::string_view path = trim(text);
    if (!name.empty()) list_.modules.push_back({std::string(is_program(path) ? path : name), begin, end});
  }

  // Lines of `lm v` about the module before them.
  void read_detail(std::string_view line) {
    constexpr std::string_view kName = "Image name:";
    if (!line.starts_with(kName) || list_.modules.empty() || is_unloaded_) return;
    const std::string_view name = trim(line.substr(kName.size()));
    if (!name.empty()) list_.modules.back().name = name;
  }

  SymbolList list_;
  bool has_modules_ = false;
  bool is_unloaded_ = false;
};

}  // namespace

ReadList read_windbg(std::string_view text) { return WindbgLog().read(text); }

}  // namespace ptkit::formats::symbols
