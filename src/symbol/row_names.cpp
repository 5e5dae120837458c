#include "symbol/row_names.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "image/image.h"

namespace ptkit::symbol {
namespace {

constexpr std::uint64_t kBegin = trace::kTscMin;
constexpr std::uint64_t kEnd = trace::kTscMax - 1;  // the last time at which code can be valid
constexpr std::size_t kLeastSlots = std::size_t{1} << 6U;
constexpr std::size_t kMostSlots = std::size_t{1} << 14U;

struct Name {
  std::int32_t code = kNoName;
  std::uint64_t offset = 0;
};

bool covers(const image::CodeView& view, std::uint64_t tsc) noexcept {
  return tsc >= view.valid_from() && tsc < view.valid_to();
}

// Caches the view of a space at a time: consecutive rows mostly share a view.
class Views {
 public:
  explicit Views(const image::Image& image) : image_(image) {}

  const image::CodeView& at(trace::SpaceId space, std::uint64_t tsc) {
    if (view_ == nullptr || view_->space() != space || !covers(*view_, tsc)) view_ = &image_.view(space, tsc);
    return *view_;
  }

 private:
  const image::Image& image_;
  const image::CodeView* view_ = nullptr;
};

// The times of a row's code: `first`; if nothing is mapped at the address then, `second`. With `backwards`,
// all times from `second` back.
struct Times {
  std::uint64_t first = kEnd;
  std::uint64_t second = kEnd;
  bool backwards = true;
};

Times times_of(const RowAddresses& rows, std::size_t row) noexcept {
  if (rows.tsc.empty()) return {};
  if (!rows.time_known[row]) return {kBegin, kEnd, true};
  const std::uint64_t begin = std::min(rows.tsc[row], kEnd);
  return {begin, begin + std::min<std::uint64_t>(rows.tsc_error[row], kEnd - begin), false};
}

// The view that has code at an address, or null.
const image::CodeView* look_at(const image::Image& image, const image::CodeView& first, const Times& times,
                               std::uint64_t ip) {
  const auto maps = [ip](const image::CodeView& view) { return view.provenance(ip).region >= 0; };
  if (maps(first)) return &first;
  const image::CodeView* view = &image.view(first.space(), times.second);
  while (!maps(*view)) {
    if (!times.backwards || view->valid_from() == kBegin) return nullptr;
    view = &image.view(first.space(), view->valid_from() - 1);
  }
  return view;
}

// A direct-mapped cache of names by address and view: addresses repeat. `lookup` finds the name of an address
// in a view.
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
  Views views(image);
  for (std::size_t row = 0; row < rows.ips.size(); ++row) {
    Name name;
    if (rows.known.empty() || rows.known[row]) {
      const std::uint64_t ip = rows.ips[row];
      const Times times = times_of(rows, row);
      const image::CodeView& view = views.at(rows.spaces[row], times.first);
      const std::uint64_t second = covers(view, times.second) ? view.valid_from() : times.second;
      Slot& slot = slots[((ip ^ std::uint64_t{view.id()} << 48U) * 0x9e37'79b9'7f4a'7c15U) >> shift];
      if (slot.view != &view || slot.ip != ip || slot.second != second) {
        const image::CodeView* const at = look_at(image, view, times, ip);
        slot = {ip, &view, second, at != nullptr ? lookup(*at, ip) : Name{}};
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
  std::vector<std::string_view> names;
  std::unordered_map<std::string_view, std::int32_t> codes;
  name_rows(image, rows, out, [&](const image::CodeView& view, std::uint64_t ip) -> Name {
    const auto found = symbols.find(view.space(), view.valid_from(), ip);
    if (!found) return {};
    const auto [code, is_new] = codes.emplace(found->name, static_cast<std::int32_t>(names.size()));
    if (is_new) names.push_back(found->name);
    return {code->second, ip - found->address};
  });
  return names;
}

void name_files(const image::Image& image, const RowAddresses& rows, RowCodes out) {
  const auto& regions = image.bundle().code;
  name_rows(image, rows, out, [&](const image::CodeView& view, std::uint64_t ip) -> Name {
    const image::Provenance from = view.provenance(ip);
    if (from.file < 0) return {};
    const trace::CodeRegion& region = regions[static_cast<std::size_t>(from.region)];
    return {from.file, ip - region.address + region.file_offset};
  });
}

}  // namespace ptkit::symbol
