#include "code/source/pdb/names.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "code/image/pe/pe.h"

namespace ptkit::code::pdb {
namespace {

// Of several names of one address the first one is shown. A linker's name that ptkit demangles has the
// arguments, as names of ELF files do; Microsoft's schemes are shown by the procedure's own name.
enum class Rank : std::uint8_t { MANGLED, PROCEDURE, PUBLIC };

struct Candidate {
  trace::SymbolEntry entry;
  Rank rank = Rank::PROCEDURE;
};

bool is_mangled(std::string_view name) noexcept { return name.starts_with("_Z") || name.starts_with("_R"); }

std::uint64_t address_of(const Candidate& one) noexcept { return one.entry.file_offset; }

}  // namespace

std::vector<trace::SymbolEntry> names_in(DumpReader dump, bool is_32_bit) {
  std::vector<Candidate> found;
  for (DumpedSymbol& one : dump.procedures) {
    if (const auto address = dump.sections.code_address(one.section, one.offset))
      found.push_back({{std::move(one.name), *address, one.size}, Rank::PROCEDURE});
  }
  std::ranges::stable_sort(found, {}, &address_of);
  const std::size_t procedures = found.size();
  for (DumpedSymbol& one : dump.publics) {
    const auto address = dump.sections.code_address(one.section, one.offset);
    if (!address) continue;
    const auto end = found.begin() + static_cast<std::ptrdiff_t>(procedures);
    const auto same =
        std::lower_bound(found.begin(), end, *address,
                         [](const Candidate& a, std::uint64_t at) { return address_of(a) < at; });
    const bool is_procedure = same != end && address_of(*same) == *address;
    std::string name(is_32_bit ? code::image::undecorated(one.name) : std::string_view(one.name));
    const Rank rank = is_mangled(name) ? Rank::MANGLED : Rank::PUBLIC;
    found.push_back({{std::move(name), *address, is_procedure ? same->entry.size : 0}, rank});
  }
  const auto by_name = [](const Candidate& one) {
    return std::tuple(address_of(one), std::string_view(one.entry.name), one.rank);
  };
  const auto by_rank = [](const Candidate& one) {
    return std::tuple(address_of(one), one.rank, std::string_view(one.entry.name));
  };
  const auto same = [](const Candidate& a, const Candidate& b) {
    return address_of(a) == address_of(b) && a.entry.name == b.entry.name;
  };
  std::ranges::sort(found, {}, by_name);
  found.erase(std::unique(found.begin(), found.end(), same), found.end());
  std::ranges::sort(found, {}, by_rank);
  std::vector<trace::SymbolEntry> names;
  names.reserve(found.size());
  for (Candidate& one : found) names.push_back(std::move(one.entry));
  return names;
}

}  // namespace ptkit::code::pdb
