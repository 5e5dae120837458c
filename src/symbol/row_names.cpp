#include "symbol/row_names.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "image/image.h"

namespace ptkit::symbol {
namespace {

constexpr std::size_t kLeastSlots = std::size_t{1} << 6U;
constexpr std::size_t kMostSlots = std::size_t{1} << 14U;

struct Name {
  std::int32_t code = kNoName;
  std::uint64_t offset = 0;
};

// Distinct names, and their codes.
struct NameCodes {
  std::int32_t code_of(std::string_view name) {
    const auto [code, is_new] = codes.emplace(name, static_cast<std::int32_t>(names.size()));
    if (is_new) names.push_back(name);
    return code->second;
  }
  std::vector<std::string_view> names;
  std::unordered_map<std::string_view, std::int32_t> codes;
};

// A direct-mapped cache of names by address and view: addresses repeat. `lookup` finds the name of an address
// in a view, which may have no code there.
template <typename Lookup>
void name_rows(const image::Image& image, const RowAddresses& rows, RowCodes out, Lookup&& lookup) {
  struct Slot {
    std::uint64_t ip = 0;
    const image::CodeView* view = nullptr;
    std::uint64_t second = 0;
    Name name;
  };
  std::vector<Slot> slots(std::clamp(std::bit_ceil(rows.ips.size()), kLeastSlots, kMostSlots));
  const int shift = 64 - std::countr_zero(slots.size());
  RowViews views(image);
  for (std::size_t row = 0; row < rows.ips.size(); ++row) {
    Name name;
    if (rows.is_known(row)) {
      const std::uint64_t ip = rows.ips[row];
      const RowTimes times = times_of(rows, row);
      const image::CodeView& view = views.at(rows.spaces[row], times.first);
      const std::uint64_t second = covers(view, times.second) ? view.valid_from() : times.second;
      Slot& slot = slots[((ip ^ std::uint64_t{view.id()} << 48U) * 0x9e37'79b9'7f4a'7c15U) >> shift];
      if (slot.view != &view || slot.ip != ip || slot.second != second) {
        const image::CodeView* const at = views.with_code(view, times, ip);
        slot = {ip, &view, second, lookup(at != nullptr ? *at : view, ip)};
      }
      name = slot.name;
    }
    out.codes[row] = name.code;
    if (!out.offsets.empty()) out.offsets[row] = name.offset;
  }
}

}  // namespace

std::vector<std::string_view> name_symbols(const Symbols& symbols, const image::Image& image,
                                           const RowAddresses& rows, RowCodes out) {
  NameCodes names;
  name_rows(image, rows, out, [&](const image::CodeView& view, std::uint64_t ip) -> Name {
    const auto found = symbols.find(view.space(), view.valid_from(), ip);
    return found ? Name{names.code_of(found->name), ip - found->address} : Name{};
  });
  return std::move(names.names);
}

std::vector<std::string_view> name_imports(const Symbols& symbols, const image::Image& image,
                                           const RowAddresses& rows, RowCodes out) {
  NameCodes names;
  name_rows(image, rows, out, [&](const image::CodeView& view, std::uint64_t ip) -> Name {
    const std::string_view found = symbols.import_at(view.space(), view.valid_from(), ip);
    return found.empty() ? Name{} : Name{names.code_of(found), 0};
  });
  return std::move(names.names);
}

std::vector<std::string_view> name_lines(const SourceLines& lines, const image::Image& image,
                                         const RowAddresses& rows, RowCodes out) {
  NameCodes files;
  name_rows(image, rows, out, [&](const image::CodeView& view, std::uint64_t ip) -> Name {
    const dwarf::SourceLine found = lines.line_at(file_at(image, view, ip), ip);
    return found.file.empty() ? Name{} : Name{files.code_of(found.file), found.line};
  });
  return std::move(files.names);
}

std::vector<SourceFrame> frames_of(const SourceLines& lines, const Symbols& symbols,
                                   const image::Image& image, const RowAddresses& rows) {
  const RowTimes times = times_of(rows, 0);
  RowViews views(image);
  const image::CodeView& view = views.at(rows.spaces[0], times.first);
  const image::CodeView* const at = views.with_code(view, times, rows.ips[0]);
  return lines.frames_at(image, at != nullptr ? *at : view, symbols, rows.ips[0]);
}

void name_files(const Symbols& symbols, const image::Image& image, const LoadAddresses* loads,
                const RowAddresses& rows, RowCodes out) {
  const auto& regions = image.bundle().code;
  name_rows(image, rows, out, [&](const image::CodeView& view, std::uint64_t ip) -> Name {
    const image::Provenance from = file_at(image, view, ip);
    if (from.file < 0) {
      const auto module = symbols.module_at(view.space(), ip);
      return module ? Name{module->file, module->rva} : Name{};
    }
    if (loads != nullptr) return {from.file, loads->rva(from.region, ip)};
    const trace::CodeRegion& region = regions[static_cast<std::size_t>(from.region)];
    return {from.file, ip - region.address + region.file_offset};
  });
}

}  // namespace ptkit::symbol
