#include "pdb/dump_reader.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ptkit::pdb {
namespace {

constexpr std::array<std::string_view, 7> kFunctions = {"S_GPROC32",    "S_LPROC32",     "S_GPROC32_ID",
                                                        "S_LPROC32_ID", "S_LPROC32_DPC", "S_LPROC32_DPC_ID",
                                                        "S_THUNK32"};

// The name of a record, which stands between the first and the last backquote, and may have such signs.
std::string_view quoted(std::string_view line) noexcept {
  const std::size_t begin = line.find('`');
  const std::size_t end = line.rfind('`');
  return begin == end ? std::string_view{} : line.substr(begin + 1, end - begin - 1);
}

// "S_GPROC32" of "72 | S_GPROC32 [size = 48] `start`"; empty: the line begins no record.
std::string_view record_kind(std::string_view line) noexcept {
  constexpr std::string_view kMark = " | S_";
  const std::size_t at = line.find(kMark);
  const std::size_t digit = line.find_first_not_of(' ');
  if (at == std::string_view::npos || digit >= at ||
      line.substr(digit, at - digit).find_first_not_of("0123456789") != std::string_view::npos)
    return {};
  const std::string_view kind = line.substr(at + kMark.size() - 2);
  return kind.substr(0, kind.find(' '));
}

}  // namespace

bool DumpReader::take(std::string_view part) {
  lines_.take(part, [this](std::string_view line) { read_line(line); });
  return !is_too_much_ && !is_rearranged_;
}

std::string DumpReader::problem() const {
  if (is_too_much_) return "it has more names than a file of its size should";
  if (is_rearranged_) return "its addresses are those of code that was rearranged afterwards (OMAP)";
  if (sections.empty() || !has_symbols_) return "llvm-pdbutil lists neither sections nor symbols of it";
  return {};
}

void DumpReader::read_line(std::string_view line) {
  constexpr std::size_t kLeastRule = 20;
  if (line.size() >= kLeastRule && line.find_first_not_of('=') == std::string_view::npos) {
    begin_part(trim(title_));
  } else if (part_ == Part::PUBLICS || part_ == Part::SYMBOLS) {
    read_symbol(line);
  } else if (part_ == Part::SECTIONS || part_ == Part::ORIGINAL_SECTIONS) {
    read_section(trim(line));
  }
  title_ = line;
}

void DumpReader::begin_part(std::string_view title) {
  part_ = Part::OTHER;
  if (title == "Public Symbols") part_ = Part::PUBLICS;
  if (title == "Symbols") part_ = Part::SYMBOLS;
  if (title == "Section Headers") part_ = Part::SECTIONS;
  if (title == "Original Section Headers") part_ = Part::ORIGINAL_SECTIONS;
  has_symbols_ = has_symbols_ || part_ == Part::SYMBOLS;
  name_.clear();
}

void DumpReader::read_symbol(std::string_view line) {
  if (const std::string_view kind = record_kind(line); !kind.empty()) {
    const bool is_function =
        part_ == Part::PUBLICS ? kind == "S_PUB32" : std::ranges::find(kFunctions, kind) != kFunctions.end();
    name_ = is_function ? quoted(line) : std::string_view{};
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

void DumpReader::read_section(std::string_view line) {
  if (line.starts_with("SECTION HEADER #")) {
    is_rearranged_ = is_rearranged_ || part_ == Part::ORIGINAL_SECTIONS;
    sections.emplace_back();
  }
  if (sections.empty()) return;
  DumpedSection& section = sections.back();
  if (line.ends_with(" virtual size")) section.size = number_after(line, "", 16).value_or(0);
  if (line.ends_with(" virtual address")) section.address = number_after(line, "", 16).value_or(0);
  if (line == "IMAGE_SCN_MEM_EXECUTE") section.executable = true;
}

void DumpReader::add(std::vector<DumpedSymbol>& to, DumpedSymbol symbol) {
  const std::size_t bytes = sizeof symbol + symbol.name.size();
  is_too_much_ = is_too_much_ || bytes > left_;
  if (is_too_much_) return;
  left_ -= bytes;
  to.push_back(std::move(symbol));
}

}  // namespace ptkit::pdb
