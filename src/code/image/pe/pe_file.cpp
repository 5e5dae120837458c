// Names and numbers are from "PE Format" (Microsoft).
#include "code/image/pe/pe_file.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <iterator>

#include "base/paths.h"

namespace ptkit::code::image {

namespace {

constexpr std::uint64_t kPointerAt = 0x3c;  // e_lfanew of the DOS header: offset of the PE header
constexpr std::size_t kSignatureBytes = 4;
constexpr std::size_t kCoffBytes = 20;
constexpr std::size_t kSectionNameBytes = 8;
constexpr std::uint64_t kMachineX64 = 0x8664;
constexpr std::uint64_t kMachineX86 = 0x14c;
constexpr std::uint64_t kPe32 = 0x10b;
constexpr std::uint64_t kPe32Plus = 0x20b;
constexpr std::size_t kLeastOptional = 96;
constexpr std::uint32_t kMemoryExecute = 0x2000'0000;  // IMAGE_SCN_MEM_EXECUTE
constexpr unsigned kMostDirectories = 16;
constexpr std::size_t kDebugBytes = 28;
constexpr std::uint32_t kCodeView = 2;
constexpr std::size_t kRsdsBytes = 24;  // signature, GUID, age; the PDB's path follows

}  // namespace

base::Result<PeFile> PeFile::open(base::Bytes bytes, PeLayout layout) {
  PeFile file(bytes);
  if (const char* problem = file.read(layout == PeLayout::FILE))
    return base::Failure{base::Status::BAD_FILE, 0, problem};
  if (layout == PeLayout::MEMORY) file.lie_in_memory();
  return file;
}

base::Result<PeFile> PeFile::open_part(base::Bytes bytes) {
  PeFile file(bytes);
  if (const char* problem = file.read(false)) return base::Failure{base::Status::BAD_FILE, 0, problem};
  return file;
}

base::Bytes PeFile::at(std::uint64_t offset, std::uint64_t size) const noexcept {
  if (offset > bytes_.size() || size > bytes_.size() - offset) return {};
  return bytes_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

const char* PeFile::read(bool whole) {
  const base::Bytes dos = at(0, kPointerAt + 4);
  if (dos.empty() || dos[0] != 'M' || dos[1] != 'Z') return "is no PE file: it does not begin with MZ";
  const std::uint64_t start = load_u32(dos, kPointerAt);
  const base::Bytes coff = at(start, kSignatureBytes + kCoffBytes);
  if (coff.empty() || base::load_le<4>(coff.data()) != 0x4550) return "has no PE header (a DOS program?)";
  const std::uint64_t machine = base::load_le<2>(coff.data() + 4);
  if (machine != kMachineX64 && machine != kMachineX86) return "is a PE file for another processor than x86";
  const auto section_count = static_cast<unsigned>(base::load_le<2>(coff.data() + 6));
  time_stamp_ = load_u32(coff, 8);
  symbol_table_ = load_u32(coff, 12);
  symbol_count_ = load_u32(coff, 16);
  const std::size_t optional_size = base::load_le<2>(coff.data() + 20);
  const base::Bytes optional = at(start + coff.size(), optional_size);
  if (optional.size() < kLeastOptional) return "is cut, or an object file: its optional header is missing";
  const std::uint64_t magic = base::load_le<2>(optional.data());
  if (magic != kPe32 && magic != kPe32Plus) return "is neither PE32 nor PE32+";
  is_64_bit_ = magic == kPe32Plus;
  base_ = is_64_bit_ ? base::load_le<8>(optional.data() + 24) : load_u32(optional, 28);
  size_ = load_u32(optional, 56);
  header_size_ = load_u32(optional, 60);
  const std::size_t directories = is_64_bit_ ? 112 : 96;
  if (optional.size() >= directories) {
    const std::uint32_t count = std::min(load_u32(optional, directories - 4), kMostDirectories);
    for (std::size_t i = 0; i < count && directories + 8 * i + 8 <= optional.size(); ++i)
      directories_.push_back(
          {load_u32(optional, directories + 8 * i), load_u32(optional, directories + 8 * i + 4)});
  }
  header_offset_ = static_cast<std::size_t>(start);
  section_table_ = header_offset_ + coff.size() + optional_size;
  return read_sections(section_count, whole);
}

const char* PeFile::read_sections(unsigned count, bool whole) {
  const base::Bytes table = at(section_table_, std::uint64_t{count} * kSectionBytes);
  if (count == 0 || table.empty()) return "is cut: it has no table of sections";
  for (std::size_t i = 0; i < count; ++i) {
    const base::Bytes row = table.subspan(i * kSectionBytes, kSectionBytes);
    Section section;
    const std::string_view name(reinterpret_cast<const char*>(row.data()), kSectionNameBytes);
    section.name = name.substr(0, name.find('\0'));
    section.address = load_u32(row, 12);
    section.file_size = section.raw_size = load_u32(row, 16);
    section.offset = section.pointer = load_u32(row, 20);
    section.executable = (load_u32(row, 36) & kMemoryExecute) != 0;
    section.size = load_u32(row, 8) != 0 ? load_u32(row, 8) : section.file_size;
    section.file_size = std::min(section.file_size, section.size);
    if (section.file_size != 0 && at(section.offset, section.file_size).empty()) {
      if (whole)
        return "is truncated: a section ends after the end of the file (of a dump of memory, say "
               "layout=memory)";
      const std::uint64_t left = bytes_.size() - std::min<std::uint64_t>(section.offset, bytes_.size());
      section.file_size = static_cast<std::uint32_t>(std::min<std::uint64_t>(section.file_size, left));
    }
    if (section.address + std::uint64_t{section.size} > 0xffffffff) return "has a section of more than 4 GiB";
    sections_.push_back(section);
    if (section.file_size != 0) by_address_.push_back(section);
  }
  std::ranges::stable_sort(by_address_, {}, &Section::address);
  return nullptr;
}

// Bytes of memory belong to the last section that begins at or before them: what a section has in memory and
// not in the file (unpacked code) is among them.
void PeFile::lie_in_memory() {
  std::vector<Section*> order;
  for (Section& one : sections_) order.push_back(&one);
  std::ranges::stable_sort(order, {}, &Section::address);
  const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(bytes_.size(), 0xffffffff));
  std::uint32_t end = size;
  for (std::size_t i = order.size(); i-- > 0;) {
    Section& one = *order[i];
    one.offset = one.address;
    one.file_size = one.address < end ? end - one.address : 0;
    one.size = std::max(one.size, one.file_size);
    end = std::min(end, one.address);
  }
  header_size_ = end;
  by_address_.clear();
  for (const Section* const one : order) {
    if (one->file_size != 0) by_address_.push_back(*one);
  }
}

PeFile::Directory PeFile::directory(unsigned number) const noexcept {
  return number < directories_.size() ? directories_[number] : Directory{};
}

PeFile::Pdb PeFile::pdb() const {
  const Directory debug = directory(kDebug);
  const base::Bytes rows = at_address(debug.address, debug.size);
  for (std::size_t row = 0; row + kDebugBytes <= rows.size(); row += kDebugBytes) {
    if (load_u32(rows, row + 12) != kCodeView || load_u32(rows, row + 16) < kRsdsBytes) continue;
    const base::Bytes data = code_view(rows.subspan(row, kDebugBytes));
    if (data.empty()) continue;
    std::array<char, 64> id{};
    std::uint64_t rest = 0;
    for (std::size_t i = 12; i < 20; ++i) rest = rest << 8U | data[i];
    std::snprintf(id.data(), id.size(), "%08" PRIx32 "%04" PRIx64 "%04" PRIx64 "%016" PRIx64 "-%" PRIx32,
                  load_u32(data, 4), base::load_le<2>(data.data() + 8), base::load_le<2>(data.data() + 10),
                  rest, load_u32(data, 20));
    const auto name = static_cast<std::uint64_t>(data.data() - bytes_.data()) + kRsdsBytes;
    return {id.data(), std::string(base::last_part(text_at(name)))};
  }
  return {};
}

std::string PeFile::id() const {
  std::string id = pdb().id;
  const bool has_stamp = time_stamp_ != 0 && time_stamp_ != UINT32_MAX;
  if (!id.empty() || !has_stamp || size_ == 0) return id;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%08" PRIx32 "-%" PRIx32, time_stamp_, size_);
  return text.data();
}

// Bytes that a row of the debug directory refers to, by RVA (AddressOfRawData) or, if not mapped, by offset.
base::Bytes PeFile::code_view(base::Bytes row) const noexcept {
  for (const base::Bytes data :
       {at_address(load_u32(row, 20), kRsdsBytes), at(load_u32(row, 24), kRsdsBytes)}) {
    if (!data.empty() && data[0] == 'R' && data[1] == 'S' && data[2] == 'D' && data[3] == 'S') return data;
  }
  return {};
}

std::optional<std::uint64_t> PeFile::offset_of(std::uint32_t address) const noexcept {
  const auto after = std::ranges::upper_bound(by_address_, address, {}, &Section::address);
  if (after != by_address_.begin()) {
    const Section& section = *std::prev(after);  // sections of one image do not overlap
    if (address - section.address < section.file_size)
      return std::uint64_t{section.offset} + (address - section.address);
  }
  if (address < header_size_ && address < bytes_.size()) return address;
  return std::nullopt;
}

base::Bytes PeFile::at_address(std::uint32_t address, std::uint64_t size) const noexcept {
  const auto offset = offset_of(address);
  return offset ? at(*offset, size) : base::Bytes{};
}

std::string_view PeFile::text_at(std::uint64_t offset) const noexcept {
  constexpr std::size_t kLongest = 4096;
  if (offset >= bytes_.size()) return {};
  const base::Bytes rest = bytes_.subspan(static_cast<std::size_t>(offset));
  const base::Bytes part = rest.first(std::min(rest.size(), kLongest));
  const auto end = std::find(part.begin(), part.end(), std::uint8_t{0});
  if (end == part.end()) return {};
  return {reinterpret_cast<const char*>(part.data()), static_cast<std::size_t>(end - part.begin())};
}

}  // namespace ptkit::code::image
