#include "code/symbol/row_names.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <unordered_map>

#include "code/image/image.h"
#include "code/symbol/anon_memory.h"
#include "code/symbol/names/demangle.h"

namespace ptkit::code::symbol {
namespace {

constexpr std::size_t kLeastSlots = std::size_t{1} << 6U;
constexpr std::size_t kMostSlots = std::size_t{1} << 14U;
constexpr std::uint64_t kHashFactor = 0x9e37'79b9'7f4a'7c15U;  // of Fibonacci hashing

struct Name {
  std::int32_t code = kNoName;
  std::uint64_t offset = 0;
};

// Distinct names, and their codes.
struct NameCodes {
  std::int32_t code_of(std::string_view name) {
    if (!names.empty() && name.data() == names[last].data() && name.size() == names[last].size())
      return static_cast<std::int32_t>(last);
    const auto [code, is_new] = codes.emplace(name, static_cast<std::int32_t>(names.size()));
    if (is_new) names.push_back(name);
    last = static_cast<std::size_t>(code->second);
    return code->second;
  }
  std::vector<std::string_view> names;
  std::size_t last = 0;  // index of the name that was given last
  std::unordered_map<std::string_view, std::int32_t> codes;
};

// Distinct source files of lines, and their codes. Texts of one file of debug information are at one address:
// a direct-mapped cache by that address needs no hash of a path.
class FileCodes {
 public:
  std::int32_t code_of(std::string_view file) {
    Slot& slot = slots_[(reinterpret_cast<std::uintptr_t>(file.data()) * kHashFactor) >> kShift];
    if (file.data() != slot.file.data() || file.size() != slot.file.size())
      slot = {file, codes_.code_of(file)};
    return slot.code;
  }
  [[nodiscard]] std::vector<std::string_view> take_names() { return std::move(codes_.names); }

 private:
  static constexpr int kSlotBits = 10;
  static constexpr int kShift = 64 - kSlotBits;
  struct Slot {
    std::string_view file;
    std::int32_t code = kNoName;
  };
  NameCodes codes_;
  std::vector<Slot> slots_ = std::vector<Slot>(std::size_t{1} << kSlotBits);
};

// Addresses from `first` to `last` of rows of one view and time: `code` has the same region for all of them.
// Code that was not mapped at the begin of rows has runs of one address.
struct Run {
  const code::image::CodeView* row_view = nullptr;
  std::uint64_t second = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  const code::image::CodeView* code = nullptr;
  code::image::Provenance where;

  [[nodiscard]] bool has(const code::image::CodeView& view, std::uint64_t time,
                         std::uint64_t ip) const noexcept {
    return row_view == &view && second == time && ip >= first && ip <= last;
  }
};

Run run_at(const RowViews& views, const code::image::Image& image, const code::image::CodeView& view,
           const RowTimes& times, std::uint64_t second, std::uint64_t ip) {
  if (const code::image::Provenance seen = view.provenance(ip); seen.region >= 0) {
    const code::image::Provenance where = file_of(image, view, seen, ip);
    return {&view, second, ip, where.last, &view, where};
  }
  const code::image::CodeView* const found = views.with_code(view, times, ip);
  const code::image::CodeView& code = found != nullptr ? *found : view;
  return {&view, second, ip, ip, &code, file_at(image, code, ip)};
}

// Addresses of rows without times that have one name, or one file.
struct Same {
  trace::SpaceId space = 0;
  std::uint64_t first = 1;
  std::uint64_t last = 0;
  Name name;  // of the first one

  [[nodiscard]] bool has(trace::SpaceId of, std::uint64_t ip) const noexcept {
    return ip >= first && ip <= last && space == of;
  }
};

// A direct-mapped cache of names by address and view: addresses repeat. `lookup` finds the name of an address
// in a run; its view may have no code there. It may also give an address up to which all have that name, and
// offsets that grow with them.
template <typename Lookup>
void name_rows(const code::image::Image& image, const RowAddresses& rows, RowCodes out, Lookup&& lookup) {
  struct Slot {
    std::uint64_t ip = 0;
    const code::image::CodeView* view = nullptr;
    std::uint64_t second = 0;
    Name name;
  };
  std::vector<Slot> slots(std::clamp(std::bit_ceil(rows.ips.size()), kLeastSlots, kMostSlots));
  const int shift = 64 - std::countr_zero(slots.size());
  RowViews views(image);
  Run run;
  Same same;
  for (std::size_t row = 0; row < rows.ips.size(); ++row) {
    Name name;
    const std::uint64_t ip = rows.ips[row];
    if (rows.is_known(row) && same.has(rows.spaces[row], ip)) {
      name = {same.name.code, same.name.offset + (ip - same.first)};
    } else if (rows.is_known(row)) {
      const RowTimes times = times_of(rows, row);
      const code::image::CodeView& view = views.at(rows.spaces[row], times.first);
      const std::uint64_t second = covers(view, times.second) ? view.valid_from() : times.second;
      Slot& slot = slots[((ip ^ std::uint64_t{view.id()} << 48U) * kHashFactor) >> shift];
      if (slot.view != &view || slot.ip != ip || slot.second != second) {
        if (!run.has(view, second, ip)) run = run_at(views, image, view, times, second, ip);
        if constexpr (std::is_invocable_v<Lookup, const Run&, std::uint64_t, std::uint64_t&>) {
          std::uint64_t last = ip;
          slot = {ip, &view, second, lookup(run, ip, last)};
          if (rows.tsc.empty()) same = {rows.spaces[row], ip, last, slot.name};
        } else {
          slot = {ip, &view, second, lookup(run, ip)};
        }
      }
      name = slot.name;
    }
    out.codes[row] = name.code;
    if (!out.offsets.empty()) out.offsets[row] = name.offset;
  }
}

template <std::string_view code::image::Import::*Part>
std::vector<std::string_view> name_part_of_imports(const Symbols& symbols, const code::image::Image& image,
                                                   const RowAddresses& rows, RowCodes out) {
  NameCodes names;
  name_rows(image, rows, out, [&](const Run& run, std::uint64_t ip) -> Name {
    const std::string_view found = symbols.import_at(run.code->space(), run.code->valid_from(), ip).*Part;
    return found.empty() ? Name{} : Name{names.code_of(found), 0};
  });
  return std::move(names.names);
}

}  // namespace

std::vector<std::string_view> name_symbols(const Symbols& symbols, const code::image::Image& image,
                                           const RowAddresses& rows, RowCodes out) {
  NameCodes names;
  name_rows(image, rows, out, [&](const Run& run, std::uint64_t ip, std::uint64_t& last) -> Name {
    std::uint64_t last_of_symbol = ip;
    const auto found = symbols.find(run.code->space(), run.code->valid_from(), ip, last_of_symbol);
    if (!found) return {};
    last = std::min(last_of_symbol, run.last);
    return {names.code_of(found->name), ip - found->address};
  });
  return std::move(names.names);
}

std::vector<std::string_view> name_imports(const Symbols& symbols, const code::image::Image& image,
                                           const RowAddresses& rows, RowCodes out) {
  return name_part_of_imports<&code::image::Import::name>(symbols, image, rows, out);
}

std::vector<std::string_view> name_import_modules(const Symbols& symbols, const code::image::Image& image,
                                                  const RowAddresses& rows, RowCodes out) {
  return name_part_of_imports<&code::image::Import::module>(symbols, image, rows, out);
}

std::vector<std::string_view> name_lines(const SourceLines& lines, const code::image::Image& image,
                                         const RowAddresses& rows, RowCodes out, bool declared) {
  FileCodes files;
  LineFinder finder(lines);
  name_rows(image, rows, out, [&](const Run& run, std::uint64_t ip) -> Name {
    const source::SourceLine found =
        declared ? finder.declaration_at(run.where, ip) : finder.line_at(run.where, ip);
    return found.file.empty() ? Name{} : Name{files.code_of(found.file), found.line};
  });
  return files.take_names();
}

std::vector<std::string> name_inlined(const SourceLines& lines, const code::image::Image& image,
                                      const RowAddresses& rows, std::span<const std::uint8_t> levels,
                                      RowCodes out) {
  struct CodeKey {
    const code::image::CodeView* view = nullptr;
    std::uint64_t ip = 0;
    std::uint8_t level = 0;
    bool operator==(const CodeKey&) const = default;
  };
  const auto hash = [](const CodeKey& key) {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
    return static_cast<std::size_t>(((key.ip ^ reinterpret_cast<std::uintptr_t>(key.view)) * kOdd) ^
                                    key.level);
  };
  std::unordered_map<CodeKey, std::int32_t, decltype(hash)> known(kLeastSlots, hash);
  NameCodes names;
  RowViews views(image);
  for (std::size_t row = 0; row < rows.ips.size(); ++row) {
    out.codes[row] = kNoName;
    if (levels[row] == 0 || !rows.is_known(row)) continue;
    const RowTimes times = times_of(rows, row);
    const code::image::CodeView& first = views.at(rows.spaces[row], times.first);
    const CodeKey key{&first, rows.ips[row], levels[row]};
    const auto [found, is_new] = known.emplace(key, kNoName);
    if (is_new) {
      const code::image::CodeView* const at = views.with_code(first, times, key.ip);
      const code::image::CodeView& view = at != nullptr ? *at : first;
      const std::string_view name = lines.inlined_at(file_at(image, view, key.ip), key.ip, key.level);
      if (!name.empty()) found->second = names.code_of(name);
    }
    out.codes[row] = found->second;
  }
  std::vector<std::string> demangled;
  for (const std::string_view name : names.names) demangled.push_back(demangle(name));
  return demangled;
}

void find_inline_levels(const SourceLines& lines, const code::image::Image& image, const RowAddresses& rows,
                        std::span<std::uint8_t> levels) {
  static_assert(source::kMostLevels <= UINT8_MAX);
  RowViews views(image);
  for (std::size_t row = 0; row < rows.ips.size(); ++row) {
    const RowTimes times = times_of(rows, row);
    const std::uint64_t ip = rows.ips[row];
    const code::image::CodeView& first = views.at(rows.spaces[row], times.first);
    const code::image::CodeView* const at = views.with_code(first, times, ip);
    const code::image::Provenance where = file_at(image, at != nullptr ? *at : first, ip);
    levels[row] = static_cast<std::uint8_t>(lines.levels_at(where, ip));
  }
}

std::vector<SourceFrame> frames_of(const SourceLines& lines, const Symbols& symbols,
                                   const code::image::Image& image, const RowAddresses& rows) {
  const RowTimes times = times_of(rows, 0);
  RowViews views(image);
  const code::image::CodeView& view = views.at(rows.spaces[0], times.first);
  const code::image::CodeView* const at = views.with_code(view, times, rows.ips[0]);
  return lines.frames_at(image, at != nullptr ? *at : view, symbols, rows.ips[0]);
}

ModuleOffset module_of(const Symbols& symbols, const code::image::Image& image, const LoadAddresses* loads,
                       const code::image::CodeView& view, const code::image::Provenance& where,
                       std::uint64_t ip) {
  if (where.file >= 0) {
    if (loads != nullptr) return {where.file, loads->rva(where.region, ip)};
    const trace::CodeRegion& region = image.bundle().code[static_cast<std::size_t>(where.region)];
    return {where.file, ip - region.address + region.file_offset};
  }
  if (const auto listed = symbols.module_at(view.space(), view.valid_from(), ip))
    return {listed->file, listed->rva};
  const AnonMemory& memory = symbols.anon_memory();
  const auto found = where.region >= 0 ? memory.find(view.space(), ip) : std::nullopt;
  if (!found) return {};
  return {static_cast<std::int32_t>(image.bundle().files.size() + *found),
          ip - memory.modules()[*found].base};
}

void find_regions(const code::image::Image& image, const RowAddresses& rows, RowCodes out) {
  name_rows(image, rows, out, [&](const Run& run, std::uint64_t ip) -> Name {
    return {run.code->provenance(ip).region, 0};
  });
}

void name_files(const Symbols& symbols, const code::image::Image& image, const LoadAddresses* loads,
                const RowAddresses& rows, RowCodes out) {
  name_rows(image, rows, out, [&](const Run& run, std::uint64_t ip, std::uint64_t& last) -> Name {
    const ModuleOffset found = module_of(symbols, image, loads, *run.code, run.where, ip);
    if (run.where.file >= 0)
      last = loads == nullptr ? run.last : loads->last_of_same(run.where.region, ip, run.last);
    return {found.number, found.offset};
  });
}

}  // namespace ptkit::code::symbol
