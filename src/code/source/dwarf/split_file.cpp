#include "code/source/dwarf/split_file.h"

#include <algorithm>
#include <array>
#include <optional>

namespace ptkit::code::dwarf {
namespace {

constexpr std::string_view kStrings = "debug_str";
constexpr std::array<std::string_view, 4> kOfUnit{"debug_info", "debug_abbrev", "debug_rnglists",
                                                  "debug_str_offsets"};

// The index of a package: a hash table of ids, then the offset and the size of each unit's part of each
// section.
class PackageIndex {
 public:
  explicit PackageIndex(base::Bytes bytes) noexcept : bytes_(bytes) {
    if (bytes.size() < kHeader) return;
    is_new_ = (number(0) & 0xFFFFU) == 5;
    columns_ = number(4);
    units_ = number(8);
    slots_ = number(12);
    ids_ = kHeader + slots_ * 12;
    offsets_ = ids_ + columns_ * 4;
    is_whole_ = (is_new_ || number(0) == 2) && columns_ <= kMostColumns && std::has_single_bit(slots_) &&
                offsets_ + units_ * columns_ * 8 <= bytes_.size();
  }

  // The row of a unit, from 1; 0: there is none.
  [[nodiscard]] std::uint64_t row_of(std::uint64_t id) const noexcept {
    if (!is_whole_) return 0;
    const std::uint64_t mask = slots_ - 1;
    const std::uint64_t step = (id >> 32U & mask) | 1U;
    std::uint64_t slot = id & mask;
    for (int probe = 0; probe < kMostProbes; ++probe, slot = (slot + step) & mask) {
      const std::uint64_t row = number(kHeader + slots_ * 8 + slot * 4);
      if (row == 0 || row > units_) return 0;
      if (base::load_le<8>(bytes_.data() + kHeader + slot * 8) == id) return row;
    }
    return 0;
  }

  // A unit's part of a section; empty: it has none.
  [[nodiscard]] base::Bytes part_of(std::uint64_t row, std::string_view name, base::Bytes section) const {
    for (std::uint64_t column = 0; column < columns_; ++column) {
      if (name_of(number(ids_ + column * 4)) != name) continue;
      const std::uint64_t at = offsets_ + ((row - 1) * columns_ + column) * 4;
      const std::uint64_t offset = number(at);
      const std::uint64_t size = number(at + units_ * columns_ * 4);
      if (offset <= section.size() && size <= section.size() - offset) return section.subspan(offset, size);
    }
    return {};
  }

 private:
  static constexpr std::uint64_t kHeader = 16;
  static constexpr std::uint64_t kMostColumns = 16;
  static constexpr int kMostProbes = 1000;  // a third of the slots or more are free

  [[nodiscard]] std::uint64_t number(std::uint64_t at) const noexcept {
    return base::load_le<4>(bytes_.data() + at);
  }
  [[nodiscard]] std::string_view name_of(std::uint64_t section) const noexcept {
    switch (section) {
      case 1:
        return "debug_info";
      case 3:
        return "debug_abbrev";
      case 6:
        return "debug_str_offsets";
      case 8:
        return is_new_ ? "debug_rnglists" : "";
      default:
        return {};
    }
  }

  base::Bytes bytes_;
  bool is_new_ = false;  // DWARF 5
  bool is_whole_ = false;
  std::uint64_t columns_ = 0;
  std::uint64_t units_ = 0;
  std::uint64_t slots_ = 0;
  std::uint64_t ids_ = 0;      // where ids of sections begin, by column
  std::uint64_t offsets_ = 0;  // where offsets begin, by row and column; sizes follow
};

void append(std::vector<std::uint8_t>& to, base::Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

// The bytes before the first offset of a string: the header that version 5 has.
std::size_t offsets_header(base::Bytes offsets) noexcept {
  constexpr std::size_t kHeader = 8;
  const bool is_new = offsets.size() >= kHeader && base::load_le<4>(offsets.data()) == offsets.size() - 4 &&
                      base::load_le<2>(offsets.data() + 4) == 5;
  return is_new ? kHeader : 0;
}

}  // namespace

std::unique_ptr<SplitFile> SplitFile::open(trace::TraceBuffer file) {
  auto elf = code::image::ElfFile::open(file.bytes());
  if (!elf.ok()) return nullptr;
  std::unique_ptr<SplitFile> split(new SplitFile(file, std::move(elf.value())));
  split->index_ = split->contents(".debug_cu_index");
  if (split->is_package()) return split;
  split->handle_ = Handle::open(std::move(file), {});
  const bool is_usable = split->handle_ && !split->handle_->is_refused();
  return is_usable ? std::move(split) : nullptr;
}

base::Bytes SplitFile::contents(std::string_view name) const {
  for (const code::image::ElfFile::Section& section : elf_.sections()) {
    if (section.name == name) return elf_.contents(section);
  }
  return {};
}

// Tools write no compressed packages.
base::Bytes SplitFile::section(std::string_view name) const {
  const std::string whole = std::string(name).append(".dwo");
  return is_package() ? contents(std::string(".").append(whole)) : handle_->section(whole);
}

std::vector<UnitSection> SplitFile::sections_of(std::uint64_t id, code::source::Budget& memory) const {
  std::vector<UnitSection> found;
  const PackageIndex index(index_);
  const std::uint64_t row = is_package() ? index.row_of(id) : 0;
  if (is_package() && row == 0) return found;
  for (const std::string_view name : kOfUnit) {
    const base::Bytes whole = section(name);
    const base::Bytes part = is_package() ? index.part_of(row, name, whole) : whole;
    if (!part.empty() && memory.take(part.size())) found.push_back({name, {part.begin(), part.end()}});
  }
  const base::Bytes strings = section(kStrings);
  const auto offsets = std::ranges::find(found, "debug_str_offsets", &UnitSection::name);
  if (!is_package() || offsets == found.end()) {
    if (memory.take(strings.size())) found.push_back({kStrings, {strings.begin(), strings.end()}});
  } else {
    found.push_back({kStrings, take_strings(strings, offsets->contents, memory)});
  }
  return found;
}

std::vector<std::uint8_t> take_strings(base::Bytes strings, std::vector<std::uint8_t>& offsets,
                                       code::source::Budget& memory) {
  constexpr std::size_t kOffset = 4;  // bytes; packages have the 32-bit format
  std::vector<std::uint8_t> taken;
  for (std::size_t at = offsets_header(offsets); at + kOffset <= offsets.size(); at += kOffset) {
    const std::uint64_t from = base::load_le<kOffset>(offsets.data() + at);
    const base::Bytes rest = from < strings.size() ? strings.subspan(from) : base::Bytes{};
    const auto end = std::ranges::find(rest, 0);
    const auto size = static_cast<std::size_t>(end - rest.begin());
    if (end == rest.end() || !memory.take(size + 1)) return {};
    const auto to = static_cast<std::uint32_t>(taken.size());
    for (std::size_t byte = 0; byte < kOffset; ++byte)
      offsets[at + byte] = static_cast<std::uint8_t>(to >> (8 * byte));
    append(taken, rest.first(size + 1));
  }
  return taken;
}

}  // namespace ptkit::code::dwarf
