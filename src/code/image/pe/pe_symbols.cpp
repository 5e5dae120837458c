// Function names of a PE file. Names and numbers are from "PE Format" (Microsoft).
#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "code/image/generated_name.h"
#include "code/image/go_table.h"
#include "code/image/name_budget.h"
#include "code/image/pe/pe.h"
#include "code/image/pe/pe_file.h"
#include "code/image/pe/pe_functions.h"
#include "code/image/section_ends.h"

namespace ptkit::code::image {
namespace {

constexpr std::size_t kExportBytes = 40;
constexpr std::size_t kSymbolBytes = 18;
constexpr std::uint64_t kFunctionType = 0x20;
constexpr std::uint32_t kMostExports = 1U << 20U;

// The functions of Go, by address.
std::vector<GoFunction> go_functions(const PeFile& file) {
  LoadedProgram program;
  program.is_64_bit = file.is_64_bit();
  for (const PeFile::Section& section : file.sections()) {
    const base::Bytes bytes = file.at(section.offset, section.file_size);
    if (!bytes.empty())
      program.parts.push_back(
          {section.name, file.linked_base() + section.address, section.offset, bytes, section.executable});
  }
  std::ranges::stable_sort(program.parts, {}, &LoadedPart::address);
  return read_go_functions(program);
}

// Of several names of one address the first one is shown.
enum class Rank : std::uint8_t { EXPORT, COFF, DECORATED, GO, GENERATED };

class SymbolReader {
 public:
  explicit SymbolReader(const PeFile& file)
      : file_(file), functions_(pe_functions(file)), names_(file.bytes().size()) {}

  std::vector<trace::SymbolEntry> read() {
    read_exports();
    read_coff();
    read_go();
    name_others();
    const auto by_name = [](const Candidate& one) {
      return std::tuple(one.entry.file_offset, std::string_view(one.entry.name), one.rank);
    };
    const auto by_rank = [](const Candidate& one) {
      return std::tuple(one.entry.file_offset, one.rank, std::string_view(one.entry.name));
    };
    const auto same = [](const Candidate& a, const Candidate& b) {
      return a.entry.file_offset == b.entry.file_offset && a.entry.name == b.entry.name;
    };
    std::ranges::sort(found_, {}, by_name);
    found_.erase(std::unique(found_.begin(), found_.end(), same), found_.end());
    std::ranges::sort(found_, {}, by_rank);
    std::vector<trace::SymbolEntry> symbols;
    symbols.reserve(found_.size());
    for (Candidate& one : found_) symbols.push_back(std::move(one.entry));
    return symbols;
  }

 private:
  struct Candidate {
    trace::SymbolEntry entry;
    Rank rank = Rank::EXPORT;
  };

  // Returns false if there are more names than a valid file can have.
  bool add(std::string_view name, std::uint32_t address, Rank rank) {
    if (!names_.take(name)) return false;
    const auto offset = file_.offset_of(address);
    if (name.empty() || !offset) return true;
    found_.push_back({{std::string(name), *offset, size_at(address)}, rank});
    return true;
  }

  void read_exports() {
    const PeFile::Directory directory = file_.directory(PeFile::kExports);
    const base::Bytes table = file_.at_address(directory.address, kExportBytes);
    if (table.empty()) return;
    const std::uint32_t functions = std::min(load_u32(table, 20), kMostExports);
    const std::uint32_t names = std::min(load_u32(table, 24), kMostExports);
    const base::Bytes addresses = file_.at_address(load_u32(table, 28), std::uint64_t{functions} * 4);
    const base::Bytes name_addresses = file_.at_address(load_u32(table, 32), std::uint64_t{names} * 4);
    const base::Bytes ordinals = file_.at_address(load_u32(table, 36), std::uint64_t{names} * 2);
    if (addresses.empty() || name_addresses.empty() || ordinals.empty()) return;
    for (std::size_t i = 0; i < names; ++i) {
      const auto ordinal = static_cast<std::size_t>(base::load_le<2>(ordinals.data() + i * 2));
      if (ordinal >= functions) continue;
      const std::uint32_t address = load_u32(addresses, ordinal * 4);
      const bool forwarded = address >= directory.address && address - directory.address < directory.size;
      const auto name = file_.offset_of(load_u32(name_addresses, i * 4));
      if (!forwarded && name && !add_export(file_.text_at(*name), address)) return;
    }
  }

  // As read_coff().
  bool add_export(std::string_view name, std::uint32_t address) {
    const std::string_view plain = file_.is_64_bit() ? name : undecorated_export(name);
    if (!add(plain, address, Rank::EXPORT)) return false;
    return plain == name || add(name, address, Rank::DECORATED);
  }

  void read_coff() {
    const std::uint64_t table = file_.symbol_table();
    const std::uint64_t strings = table + std::uint64_t{file_.symbol_count()} * kSymbolBytes;
    if (table == 0 || file_.at(table, strings - table).empty()) return;
    for (std::uint64_t at = table; at < strings;) {
      const base::Bytes row = file_.at(at, kSymbolBytes);
      if (row.empty()) return;
      at += kSymbolBytes * (1 + std::uint64_t{row[17]});  // with auxiliary rows
      const auto section = static_cast<std::size_t>(base::load_le<2>(row.data() + 12));
      if ((base::load_le<2>(row.data() + 14) & 0xf0) != kFunctionType) continue;
      if (section == 0 || section > file_.sections().size()) continue;
      const std::string_view short_name(reinterpret_cast<const char*>(row.data()), 8);
      const std::string_view name = load_u32(row, 0) == 0 ? file_.text_at(strings + load_u32(row, 4))
                                                          : short_name.substr(0, short_name.find('\0'));
      if (!add_coff(name, file_.sections()[section - 1].address + load_u32(row, 8))) return;
    }
  }

  // 32-bit names are found with and without decoration.
  bool add_coff(std::string_view name, std::uint32_t address) {
    const std::string_view plain = file_.is_64_bit() ? name : undecorated(name);
    if (!add(plain, address, Rank::COFF)) return false;
    return plain == name || add(name, address, Rank::DECORATED);
  }

  void read_go() {
    for (const GoFunction& one : go_functions(file_)) {
      if (!names_.take(one.name)) return;
      const auto address = static_cast<std::uint32_t>(one.address - file_.linked_base());
      const std::uint64_t size = size_at(address);
      found_.push_back({{std::string(one.name), one.file_offset, size == 0 ? one.size : size}, Rank::GO});
    }
  }

  void name_others() {
    std::vector<std::uint64_t> named;
    named.reserve(found_.size());
    for (const Candidate& one : found_) named.push_back(one.entry.file_offset);
    std::ranges::sort(named);
    for (const PeFunction& one : functions_) {
      const auto offset = file_.offset_of(one.begin);
      if (!offset || std::ranges::binary_search(named, *offset)) continue;
      if (!add(generated_name({}, one.begin), one.begin, Rank::GENERATED)) return;
    }
  }

  // 0: no function begins there, or its size is not known.
  [[nodiscard]] std::uint64_t size_at(std::uint32_t address) const noexcept {
    const auto found = std::ranges::lower_bound(functions_, address, {}, &PeFunction::begin);
    return found == functions_.end() || found->begin != address ? 0 : found->end - found->begin;
  }

  const PeFile& file_;
  std::vector<PeFunction> functions_;
  NameBudget names_;
  std::vector<Candidate> found_;
};

}  // namespace

std::string_view undecorated(std::string_view name) noexcept {
  if (name.starts_with('?')) return name;
  std::string_view plain = name;
  const std::size_t at = plain.find_last_of('@');
  const bool has_bytes = at != std::string_view::npos && at != 0 && at + 1 < plain.size() &&
                         plain.find_first_not_of("0123456789", at + 1) == std::string_view::npos;
  if (has_bytes) plain = plain.substr(0, plain[at - 1] == '@' ? at - 1 : at);
  if (plain.starts_with('_') || (has_bytes && plain.starts_with('@'))) plain.remove_prefix(1);
  return plain.empty() ? name : plain;
}

std::string_view undecorated_export(std::string_view name) noexcept {
  const std::string_view plain = undecorated(name);
  return name.ends_with(plain) ? name : plain;
}

std::vector<trace::SymbolEntry> pe_symbols(base::Bytes bytes, bool with_ends) {
  const auto file = PeFile::open(bytes);
  if (!file.ok()) return {};
  std::vector<trace::SymbolEntry> symbols = SymbolReader(file.value()).read();
  std::vector<SectionBytes> sections;
  for (const PeFile::Section& section : file.value().sections()) {
    if (section.file_size != 0)
      sections.push_back({section.offset, section.file_size});  // exports may be data
  }
  if (with_ends) add_section_ends(symbols, sections, bytes.size());
  return symbols;
}

}  // namespace ptkit::code::image
