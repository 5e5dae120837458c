// The form of tables in bundles: unsigned LEB128 numbers, offsets as distances (docs/bundle-format.md).
#include <algorithm>

#include "code/bounds/cursor.h"
#include "code/bounds/table.h"

namespace ptkit::code::bounds {
namespace {

constexpr std::uint64_t kVersion = 1;

// Distances of either sign as unsigned numbers, small ones as small numbers.
constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return static_cast<std::uint64_t>(value) << 1U ^ static_cast<std::uint64_t>(value >> 63U);
}
constexpr std::int64_t from_zigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value >> 1U ^ (~(value & 1U) + 1U));
}

}  // namespace

std::vector<std::uint8_t> UnwindTable::encode() const {
  std::vector<std::uint8_t> out;
  if (functions_.empty()) return out;
  const auto ranges = [&](const auto& all, const auto& rest) {
    append_uleb(out, all.size());
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      append_uleb(out, all[i].begin - end);
      append_uleb(out, all[i].end - all[i].begin);
      rest(i);
      end = all[i].end;
    }
  };
  append_uleb(out, kVersion);
  ranges(segments_, [&](std::size_t i) { append_uleb(out, segments_[i].rva); });
  ranges(stubs_, [](std::size_t) {});
  ranges(functions_, [](std::size_t) {});
  std::size_t last = 0;
  append_uleb(out, static_cast<std::uint64_t>(std::ranges::count(is_part_, true)));
  for (std::size_t i = 0; i < is_part_.size(); ++i) {
    if (!is_part_[i]) continue;
    append_uleb(out, i - last);
    last = i;
  }
  ranges(call_sites_, [&](std::size_t i) {
    append_uleb(out, zigzag(std::int64_t{call_sites_[i].pad} - std::int64_t{call_sites_[i].begin}));
  });
  return out;
}

class TableDecoder {
 public:
  TableDecoder(base::Bytes bytes, std::uint64_t file_bytes) noexcept
      : from_(bytes, 0, true), file_bytes_(std::min<std::uint64_t>(file_bytes, UINT32_MAX)) {}

  std::optional<UnwindTable> decode() {
    UnwindTable table;
    if (from_.uleb() != kVersion) return std::nullopt;
    ranges(table.segments_, [&](auto& segment) { segment.rva = from_.uleb(); });
    ranges(table.stubs_, [](auto&) {});
    ranges(table.functions_, [](auto&) {});
    parts(table.is_part_, table.functions_.size());
    ranges(table.call_sites_, [&](auto& site) {
      const auto pad =
          static_cast<std::uint64_t>(site.begin) + static_cast<std::uint64_t>(from_zigzag(from_.uleb()));
      if (pad >= file_bytes_) from_.fail();
      site.pad = static_cast<std::uint32_t>(pad);
    });
    if (!from_.good() || from_.left() != 0 || table.functions_.empty()) return std::nullopt;
    table.collect_pads();
    return table;
  }

 private:
  // Each range has two bytes at least, so a damaged count takes no memory.
  template <typename Range, typename Rest>
  void ranges(std::vector<Range>& out, const Rest& rest) {
    const std::uint64_t count = from_.uleb();
    if (count > from_.left() / 2) from_.fail();
    if (!from_.good()) return;
    out.reserve(static_cast<std::size_t>(count));
    std::uint64_t end = 0;
    for (std::uint64_t i = 0; i < count && from_.good(); ++i) {
      const std::uint64_t gap = from_.uleb();
      const std::uint64_t size = from_.uleb();
      const bool fits = gap <= file_bytes_ - end && size <= file_bytes_ - end - gap && size != 0;
      if (!fits) return from_.fail();
      Range& range = out.emplace_back();
      range.begin = static_cast<std::uint32_t>(end + gap);
      end += gap + size;
      range.end = static_cast<std::uint32_t>(end);
      rest(range);
    }
  }

  void parts(std::vector<bool>& out, std::size_t functions) {
    out.resize(functions);
    const std::uint64_t count = from_.uleb();
    std::uint64_t index = 0;
    for (std::uint64_t i = 0; i < count && from_.good(); ++i) {
      const std::uint64_t step = from_.uleb();
      if (step >= functions - index) return from_.fail();
      index += step;
      out[static_cast<std::size_t>(index)] = true;
    }
  }

  Cursor from_;
  std::uint64_t file_bytes_;
};

std::optional<UnwindTable> UnwindTable::decode(base::Bytes bytes, std::uint64_t file_bytes) {
  return TableDecoder(bytes, file_bytes).decode();
}

}  // namespace ptkit::code::bounds
