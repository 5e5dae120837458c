#include "code/source/pdb/dump/dump_reader.h"

#include <utility>

namespace ptkit::code::pdb {
namespace {

bool is_function(std::string_view kind) noexcept { return is_procedure(kind) || kind == "S_THUNK32"; }

}  // namespace

bool DumpReader::take(std::string_view part) {
  text_.take(part, *this);
  return !is_too_much_ && !sections.is_rearranged();
}

std::string DumpReader::problem() const {
  if (is_too_much_) return "it has more names than a file of its size should";
  if (sections.is_rearranged())
    return "its addresses are those of code that was rearranged afterwards (OMAP)";
  if (sections.empty() || !has_symbols_) return "llvm-pdbutil lists neither sections nor symbols of it";
  return {};
}

void DumpReader::read_line(std::string_view line) {
  if (part_ == Part::PUBLICS || part_ == Part::SYMBOLS) read_symbol(line);
  if (part_ == Part::SECTIONS) sections.read_line(line);
}

void DumpReader::begin_part(std::string_view title) {
  part_ = Part::OTHER;
  if (title == "Public Symbols") part_ = Part::PUBLICS;
  if (title == "Symbols") part_ = Part::SYMBOLS;
  if (sections.begin_part(title)) part_ = Part::SECTIONS;
  has_symbols_ = has_symbols_ || part_ == Part::SYMBOLS;
  name_.clear();
}

void DumpReader::read_symbol(std::string_view line) {
  if (const std::string_view kind = record_of(line).kind; !kind.empty()) {
    const bool is_named = part_ == Part::PUBLICS ? kind == "S_PUB32" : is_function(kind);
    name_ = is_named ? quoted(line) : std::string_view{};
    return;
  }
  constexpr std::string_view kAddress = "addr = ";
  const std::size_t at = line.find(kAddress);
  if (name_.empty() || at == std::string_view::npos) return;
  const std::string_view place = line.substr(at);
  const auto section = number_after(place, kAddress);
  const auto offset = number_after(place, ":");
  if (!section || !offset) return;
  DumpedSymbol symbol{std::exchange(name_, {}), *section, *offset};
  if (part_ == Part::SYMBOLS) {
    const auto size = number_after(line, "code size = ");
    symbol.size = size ? *size : number_after(line, ", size = ").value_or(0);  // of a procedure, of a thunk
    add(procedures, std::move(symbol));
  } else if (line.substr(0, at).find("function") != std::string_view::npos ||
             line.substr(0, at).find("code") != std::string_view::npos) {
    add(publics, std::move(symbol));
  }
}

void DumpReader::add(std::vector<DumpedSymbol>& to, DumpedSymbol symbol) {
  const std::size_t bytes = sizeof symbol + symbol.name.size();
  is_too_much_ = is_too_much_ || bytes > left_;
  if (is_too_much_) return;
  left_ -= bytes;
  to.push_back(std::move(symbol));
}

}  // namespace ptkit::code::pdb
