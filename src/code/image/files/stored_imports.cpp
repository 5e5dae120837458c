// The form of import slots in bundles: integers of fixed width (docs/bundle-format.md).
#include <algorithm>

#include "base/fields.h"
#include "code/image/files/imports.h"

namespace ptkit::code::image {
namespace {

constexpr std::uint32_t kIs64Bit = 1;  // flag
constexpr std::size_t kSegmentBytes = 24;
constexpr std::size_t kModuleBytes = 4;  // without the name
constexpr std::size_t kSlotBytes = 16;   // without the name

void append_text(std::vector<std::uint8_t>& out, std::string_view text) {
  out.insert(out.end(), text.begin(), text.end());
}

}  // namespace

std::vector<std::uint8_t> Imports::encode() const {
  std::vector<std::uint8_t> out;
  if (empty()) return out;
  base::append_le(out, is_64_bit_ ? kIs64Bit : std::uint32_t{0});
  base::append_le(out, static_cast<std::uint32_t>(segments_.size()));
  base::append_le(out, static_cast<std::uint32_t>(modules_.size()));
  base::append_le(out, static_cast<std::uint32_t>(slots_.size()));
  base::append_le(out, linked_base_);
  base::append_le(out, table_);
  for (const FileSegment& segment : segments_) {
    base::append_le(out, segment.file_offset);
    base::append_le(out, segment.size);
    base::append_le(out, segment.rva);
  }
  for (const std::string& module : modules_) {
    base::append_le(out, static_cast<std::uint32_t>(module.size()));
    append_text(out, module);
  }
  for (const Slot& slot : slots_) {
    base::append_le(out, slot.rva);
    base::append_le(out, slot.module);
    base::append_le(out, slot.length);
    append_text(out, name_of(slot));
  }
  return out;
}

class ImportsDecoder {
 public:
  explicit ImportsDecoder(base::Bytes bytes) noexcept : rest_(bytes) {}

  std::optional<Imports> decode() {
    Imports out;
    const auto flags = number<4>();
    const auto segments = number<4>();
    const auto modules = number<4>();
    const auto slots = number<4>();
    out.is_64_bit_ = flags == kIs64Bit;
    out.linked_base_ = number<8>();
    out.table_ = number<8>();
    if ((flags & ~std::uint64_t{kIs64Bit}) != 0 || slots == 0) return std::nullopt;
    read_segments(segments, out.segments_);
    read_modules(modules, out.modules_);
    read_slots(slots, out);
    return is_good_ && rest_.empty() ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  template <std::size_t N>
  std::uint64_t number() noexcept {
    if (rest_.size() < N) is_good_ = false;
    if (!is_good_) return 0;
    const std::uint64_t value = base::load_le<N>(rest_.data());
    rest_ = rest_.subspan(N);
    return value;
  }

  // Names have one byte at least, and no zero.
  std::string_view text(std::uint64_t length) noexcept {
    if (length == 0 || length > rest_.size()) is_good_ = false;
    if (!is_good_) return {};
    const std::string_view found(reinterpret_cast<const char*>(rest_.data()),
                                 static_cast<std::size_t>(length));
    if (found.find('\0') != std::string_view::npos) is_good_ = false;
    rest_ = rest_.subspan(found.size());
    return found;
  }

  // A damaged count takes no memory.
  bool fits(std::uint64_t count, std::size_t least_bytes) noexcept {
    if (count > rest_.size() / least_bytes) is_good_ = false;
    return is_good_;
  }

  void read_segments(std::uint64_t count, std::vector<FileSegment>& out) {
    if (!fits(count, kSegmentBytes)) return;
    for (std::uint64_t i = 0; i < count; ++i) {
      FileSegment& segment = out.emplace_back();
      segment.file_offset = number<8>();
      segment.size = number<8>();
      segment.rva = number<8>();
      segment.executable = true;
    }
  }

  void read_modules(std::uint64_t count, std::vector<std::string>& out) {
    if (!fits(count, kModuleBytes + 1)) return;
    for (std::uint64_t i = 0; i < count && is_good_; ++i) out.emplace_back(text(number<4>()));
  }

  void read_slots(std::uint64_t count, Imports& out) {
    if (!fits(count, kSlotBytes + 1)) return;
    out.slots_.reserve(static_cast<std::size_t>(count));
    for (std::uint64_t i = 0; i < count && is_good_; ++i) {
      const std::uint64_t rva = number<8>();
      const auto module = static_cast<std::uint32_t>(number<4>());
      const std::string_view name = text(number<4>());
      const bool is_ordered = i == 0 || rva > out.slots_.back().rva;
      if (!is_ordered || module > out.modules_.size()) is_good_ = false;
      if (is_good_) out.add(rva, name, module);
    }
  }

  base::Bytes rest_;
  bool is_good_ = true;
};

std::optional<Imports> Imports::decode(base::Bytes bytes) { return ImportsDecoder(bytes).decode(); }

}  // namespace ptkit::code::image
