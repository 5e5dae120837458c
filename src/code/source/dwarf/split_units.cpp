#include "code/source/dwarf/split_units.h"

#include <dwarf.h>

#include <algorithm>

#include "code/image/elf/debug_sections.h"

namespace ptkit::code::dwarf {
namespace {

constexpr Dwarf_Half kNewLists = 5;  // the version of DWARF with .debug_rnglists

// The value of the first of two attributes that a unit has: that of DWARF 5, or that of GNU tools before.
std::uint64_t number_of(Dwarf_Die& unit, unsigned attribute, unsigned older) {
  Dwarf_Attribute found;
  Dwarf_Word value = 0;
  if (dwarf_formudata(dwarf_attr(&unit, attribute, &found), &value) == 0) return value;
  return dwarf_formudata(dwarf_attr(&unit, older, &found), &value) == 0 ? value : 0;
}

std::string text_of(Dwarf_Die& unit, unsigned attribute) {
  Dwarf_Attribute found;
  const char* const text = dwarf_formstring(dwarf_attr(&unit, attribute, &found));
  return text == nullptr ? std::string() : std::string(text);
}

// The one split unit of this id.
std::optional<Dwarf_Die> unit_with(Dwarf* dwarf, std::uint64_t id, code::source::Budget& budget) {
  Dwarf_CU* unit = nullptr;
  std::uint8_t type = 0;
  Dwarf_Die die;
  while (budget.take() && dwarf_get_units(dwarf, unit, &unit, nullptr, &type, &die, nullptr) == 0) {
    std::uint64_t found = 0;
    if (type == DW_UT_split_compile &&
        dwarf_cu_info(unit, nullptr, nullptr, nullptr, nullptr, &found, nullptr, nullptr) == 0 && found == id)
      return die;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Dwarf_Die> SplitUnits::whole(Dwarf_Die& unit) {
  Skeleton skeleton{unit, 0, 0};
  std::uint8_t type = 0;
  if (dwarf_cu_info(unit.cu, &skeleton.version, &type, nullptr, nullptr, &skeleton.id, nullptr, nullptr) != 0)
    return unit;
  if (type != DW_UT_skeleton) return unit;
  SplitLink link{text_of(unit, DW_AT_dwo_name), text_of(unit, DW_AT_comp_dir)};
  if (link.name.empty()) link.name = text_of(unit, DW_AT_GNU_dwo_name);
  const auto found = find(skeleton, link);
  if (!found && missing_.empty()) missing_ = link.name;
  return found;
}

std::optional<Dwarf_Die> SplitUnits::find(const Skeleton& skeleton, const SplitLink& link) {
  if (!find_) return std::nullopt;
  if (!is_prepared_) prepare();
  for (const auto& package : packages_) {
    if (const auto found = open_unit(*package, skeleton)) return found;
  }
  for (trace::TraceBuffer& file : find_(link)) {
    const auto split = SplitFile::open(std::move(file));
    const auto found = split ? open_unit(*split, skeleton) : std::nullopt;
    if (found) return found;
  }
  return std::nullopt;
}

void SplitUnits::prepare() {
  is_prepared_ = true;
  for (trace::TraceBuffer& file : find_({})) {
    if (auto package = SplitFile::open(std::move(file))) packages_.push_back(std::move(package));
  }
  Dwarf_CU* unit = nullptr;
  Dwarf_Die die;
  while (context_.budget.take() &&
         dwarf_get_units(skeletons_.get(), unit, &unit, nullptr, nullptr, &die, nullptr) == 0) {
    addresses_.bases.push_back(number_of(die, DW_AT_addr_base, DW_AT_GNU_addr_base));
    ranges_.bases.push_back(number_of(die, DW_AT_GNU_ranges_base, DW_AT_GNU_ranges_base));
  }
  addresses_.whole = skeletons_.section("debug_addr");
  ranges_.whole = skeletons_.section("debug_ranges");
  for (Shared* const one : {&addresses_, &ranges_}) std::ranges::sort(one->bases);
}

base::Bytes SplitUnits::Shared::from(std::uint64_t base) const {
  if (base >= whole.size()) return {};
  const auto above = std::ranges::upper_bound(bases, base);
  const std::uint64_t end =
      above == bases.end() ? whole.size() : std::min<std::uint64_t>(*above, whole.size());
  return whole.subspan(base, end - base);
}

std::optional<Dwarf_Die> SplitUnits::open_unit(const SplitFile& file, const Skeleton& skeleton) {
  std::vector<UnitSection> sections = file.sections_of(skeleton.id, context_.memory);
  if (sections.empty()) return std::nullopt;
  Dwarf_Die die = skeleton.die;
  const base::Bytes addresses = addresses_.from(number_of(die, DW_AT_addr_base, DW_AT_GNU_addr_base));
  sections.push_back({"debug_addr", {addresses.begin(), addresses.end()}});
  if (skeleton.version < kNewLists) {
    std::vector<std::uint8_t> lists(kBeforeLists);  // libdw takes a list at 0 for none
    const base::Bytes ranges = ranges_.from(number_of(die, DW_AT_GNU_ranges_base, DW_AT_GNU_ranges_base));
    lists.insert(lists.end(), ranges.begin(), ranges.end());
    sections.push_back({"debug_ranges", std::move(lists)});
  }
  std::vector<code::image::NamedSection> named;
  std::uint64_t size = 0;
  for (const UnitSection& one : sections) {
    named.push_back({std::string(".").append(one.name), one.contents});
    size += one.contents.size();
  }
  if (!context_.memory.take(size)) return std::nullopt;
  const std::string bytes = code::image::elf_of_sections(file.bytes(), named);
  auto handle = Handle::open(trace::TraceBuffer::from_vector({bytes.begin(), bytes.end()}), {});
  if (!handle || handle->is_refused()) return std::nullopt;
  const auto found = unit_with(handle->get(), skeleton.id, context_.budget);
  if (!found) return std::nullopt;
  if (!context_.budget.is_spent()) context_.budget.put_back(handle->steps_of_bytes());
  Dwarf_Addr base = 0;
  if (dwarf_lowpc(&die, &base) != 0) base = 0;
  context_.split_units[found->cu] = {base, skeleton.version < kNewLists, handle->section("debug_rnglists")};
  units_.push_back(std::move(handle));
  return found;
}

}  // namespace ptkit::code::dwarf
