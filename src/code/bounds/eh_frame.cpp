#include "code/bounds/eh_frame.h"

#include <algorithm>
#include <optional>

#include "code/bounds/cursor.h"
#include "code/bounds/file_segments.h"

namespace ptkit::code::bounds {
namespace {

constexpr std::uint64_t kLongLength = 0xFFFF'FFFF;
constexpr std::size_t kMostLetters = 8;  // of an augmentation; compilers write "zPLR" and "zPLRS"

// The common information entry (CIE) of FDEs, as far as their heads need it.
struct Common {
  std::uint8_t pointers = 0;  // encoding of addresses of functions
  std::uint8_t call_sites = kOmitted;
  bool has_lengths = false;  // FDEs have a length of their augmentation data
};

// The augmentation data of a CIE. False: a letter is not known, so that FDEs cannot be read.
bool read_augmentation(Cursor& from, base::Bytes letters, Common& out) {
  for (const std::uint8_t letter : letters) {
    switch (letter) {
      case 'L':
        out.call_sites = from.byte();
        break;
      case 'P':
        static_cast<void>(from.value(from.byte()));
        break;
      case 'R':
        out.pointers = from.byte();
        break;
      case 'S':  // frame of a signal
      case 'B':
        break;
      default:
        return false;
    }
  }
  return from.good();
}

// The first instruction of an FDE's program, before any address: a function that begins has the frame that
// its CIE says. Parts of functions (".cold") change it at once.
bool changes_frame(Cursor program) {
  std::uint8_t first = 0;
  while (program.left() != 0 && first == 0) first = program.byte();  // DW_CFA_nop
  const bool saves_register = (first & 0xc0U) == 0x80;               // DW_CFA_offset
  const bool moves_frame =
      (first >= 0x0c && first <= 0x0f) || first == 0x12 || first == 0x13;  // DW_CFA_def_cfa*
  return saves_register || moves_frame;
}

class Section {
 public:
  Section(base::Bytes bytes, std::uint64_t address, bool is_64_bit) noexcept
      : bytes_(bytes), address_(address), is_64_bit_(is_64_bit) {}

  // `is_bounded`: the section's size is known, so that entries after an end mark (of crtend.o) count.
  std::vector<FrameEntry> read(bool is_bounded) {
    std::vector<FrameEntry> found;
    Cursor all(bytes_, address_, is_64_bit_);
    while (all.left() >= 4) {
      Entry entry = next(all);
      if (!all.good()) break;
      if (entry.is_end && !is_bounded) break;
      if (entry.is_end || entry.common == 0) continue;
      if (const auto frame = read_frame(entry)) found.push_back(*frame);
    }
    return found;
  }

 private:
  struct Entry {
    Cursor contents;
    std::uint64_t offset = 0;  // of the field that refers to the CIE
    std::uint64_t common = 0;  // the field: 0 in a CIE, else the distance back to the CIE
    bool is_end = false;
  };

  static Entry next(Cursor& all) {
    std::uint64_t length = all.fixed<4>();
    const bool is_long = length == kLongLength;
    if (is_long) length = all.fixed<8>();
    Entry entry{all.part(length), all.at() - length, 0, length == 0};
    if (length != 0) entry.common = is_long ? entry.contents.fixed<8>() : entry.contents.fixed<4>();
    return entry;
  }

  // Consecutive FDEs mostly share a CIE.
  const std::optional<Common>& common_at(std::uint64_t offset) {
    if (offset != common_offset_ || !has_common_) {
      common_ = read_common(offset);
      common_offset_ = offset;
      has_common_ = true;
    }
    return common_;
  }

  [[nodiscard]] std::optional<Common> read_common(std::uint64_t offset) const {
    if (offset >= bytes_.size()) return std::nullopt;
    Cursor all(bytes_.subspan(static_cast<std::size_t>(offset)), address_ + offset, is_64_bit_);
    Entry entry = next(all);
    if (!all.good() || entry.is_end || entry.common != 0) return std::nullopt;
    Cursor& from = entry.contents;
    const std::uint8_t version = from.byte();
    if (version != 1 && version != 3) return std::nullopt;
    std::array<std::uint8_t, kMostLetters> letters{};
    std::size_t count = 0;
    while (const std::uint8_t letter = from.byte()) {
      if (count == letters.size()) return std::nullopt;
      letters[count++] = letter;
    }
    from.uleb();  // code alignment
    from.uleb();  // data alignment
    if (version == 1) {
      from.byte();  // register of the return address
    } else {
      from.uleb();
    }
    Common common;
    common.has_lengths = count != 0 && letters[0] == 'z';
    if (!common.has_lengths) return count == 0 && from.good() ? std::optional(common) : std::nullopt;
    Cursor data = from.part(from.uleb());
    if (!read_augmentation(data, base::Bytes(letters).subspan(1, count - 1), common)) return std::nullopt;
    return common;
  }

  std::optional<FrameEntry> read_frame(Entry& entry) {
    if (entry.common > entry.offset) return std::nullopt;
    const auto& common = common_at(entry.offset - entry.common);
    if (!common) return std::nullopt;
    Cursor& from = entry.contents;
    const auto begin = from.pointer(common->pointers);
    if (!begin) return std::nullopt;
    FrameEntry frame;
    frame.begin = *begin;
    frame.size = from.value(common->pointers);
    if (common->has_lengths) {
      Cursor data = from.part(from.uleb());
      frame.call_sites = data.pointer(common->call_sites).value_or(0);
    }
    if (!from.good() || frame.size == 0) return std::nullopt;
    frame.is_part = changes_frame(from);
    return frame;
  }

  base::Bytes bytes_;
  std::uint64_t address_;
  bool is_64_bit_;
  std::uint64_t common_offset_ = 0;
  bool has_common_ = false;
  std::optional<Common> common_;
};

// Files without section headers have the address of .eh_frame in .eh_frame_hdr, which is a segment.
std::optional<std::uint64_t> address_in_header(const code::image::ElfFile& file, bool is_64_bit) {
  for (const GElf_Phdr& segment : file.segments()) {
    if (segment.p_type != PT_GNU_EH_FRAME || segment.p_offset >= file.bytes().size()) continue;
    Cursor from(file.bytes().subspan(static_cast<std::size_t>(segment.p_offset)), segment.p_vaddr, is_64_bit);
    const std::uint8_t version = from.byte();
    const std::uint8_t encoding = from.byte();
    from.skip(2);  // encodings of its search table
    return version == 1 ? from.pointer(encoding) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::vector<FrameEntry> read_frame_entries(const code::image::ElfFile& file) {
  if (file.header().e_type != ET_EXEC && file.header().e_type != ET_DYN) return {};
  const bool is_64_bit = file.header().e_ident[EI_CLASS] == ELFCLASS64;
  const auto sections = file.sections();
  const auto section = std::ranges::find(sections, ".eh_frame", &code::image::ElfFile::Section::name);
  if (section != sections.end())
    return Section(file.contents(*section), section->header.sh_addr, is_64_bit).read(true);
  const auto address = address_in_header(file, is_64_bit);
  const auto span = address ? FileSegments(file).find(*address) : std::nullopt;
  if (!span) return {};
  const base::Bytes bytes =
      file.bytes().subspan(static_cast<std::size_t>(span->offset), static_cast<std::size_t>(span->left));
  return Section(bytes, *address, is_64_bit).read(false);
}

}  // namespace ptkit::code::bounds
