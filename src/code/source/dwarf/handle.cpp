#include "code/source/dwarf/handle.h"

#include <elfutils/libdwelf.h>

#include <algorithm>
#include <optional>

#include "base/memory_left.h"
#include "code/image/elf/elf.h"
#include "code/source/dwarf/abbreviations.h"

namespace ptkit::code::dwarf {
namespace {

using Section = code::image::ElfFile::Section;

// The name of a debug section without its dot, and without the z of sections that are compressed in the old
// way. Empty for other sections.
std::string_view debug_name(const Section& section) noexcept {
  const std::string_view name = section.name;
  if (name.starts_with(".debug_")) return name.substr(1);
  return name.starts_with(".zdebug_") ? name.substr(2) : std::string_view{};
}

bool is_old_form(const Section& section) noexcept { return section.name.starts_with(".zdebug_"); }

// The size that the header of a compressed section says; libdw takes so much memory.
std::uint64_t uncompressed_size(const code::image::ElfFile& elf, const Section& section) {
  GElf_Chdr header;
  if ((section.header.sh_flags & SHF_COMPRESSED) != 0 && gelf_getchdr(section.handle, &header) != nullptr)
    return header.ch_size;
  const base::Bytes contents = elf.contents(section);
  if (!is_old_form(section) || contents.size() < 12) return contents.size();
  std::uint64_t size = 0;  // "ZLIB", then the size, its highest byte first
  for (std::size_t i = 4; i < 12; ++i) size = size << 8U | contents[i];
  return size;
}

// Nothing if it exceeds `most`.
std::optional<std::uint64_t> size_of_all(const code::image::ElfFile& elf, std::uint64_t most) {
  std::uint64_t size = 0;
  for (const Section& section : elf.sections()) {
    if (debug_name(section).empty()) continue;
    const std::uint64_t one = uncompressed_size(elf, section);
    if (one > most || size > most - one) return std::nullopt;
    size += one;
  }
  return size;
}

// libdw uncompresses sections where they are, and so writes into their headers.
bool has_compressed(const code::image::ElfFile& elf) {
  return std::ranges::any_of(elf.sections(), [](const Section& section) {
    return !debug_name(section).empty() &&
           (is_old_form(section) || (section.header.sh_flags & SHF_COMPRESSED) != 0);
  });
}

}  // namespace

std::unique_ptr<Handle> Handle::open(trace::TraceBuffer file, const FindAlternate& find_alternate) {
  auto elf = code::image::ElfFile::open(file.bytes());
  if (!elf.ok()) return nullptr;
  const std::uint64_t memory = base::memory_left().least().usable() / 4;
  const auto size = size_of_all(elf.value(), memory);
  if (size == 0) return nullptr;
  if (size && has_compressed(elf.value())) {
    const base::Bytes bytes = file.bytes();
    file = trace::TraceBuffer::from_vector({bytes.begin(), bytes.end()});
    elf = code::image::ElfFile::open(file.bytes());
    if (!elf.ok()) return nullptr;
  }
  std::unique_ptr<Handle> handle(new Handle(std::move(file), std::move(elf.value()), memory));
  if (!size) return handle;  // refused
  handle->size_ = *size;
  handle->dwarf_.reset(dwarf_begin_elf(handle->elf_.get(), DWARF_C_READ, nullptr));
  if (!handle->dwarf_ || !handle->add_alternate(find_alternate)) return nullptr;
  code::source::Budget steps = handle->steps();
  const bool fits = handle->memory_.take(*size) && !(handle->alternate_ && handle->alternate_->is_refused());
  const auto longest =
      fits ? longest_abbreviation(*handle->dwarf_, handle->section("debug_abbrev"), steps, handle->memory_)
           : std::nullopt;
  if (longest) {
    handle->weight_ = std::max<std::uint64_t>(1, *longest / kUsualAbbreviation);
    if (handle->alternate_) handle->weight_ = std::max(handle->weight_, handle->alternate_->weight_);
  } else {
    handle->dwarf_.reset();
  }
  return handle;
}

// False: there should be one. libdw would then open the file of that name, whatever that is.
bool Handle::add_alternate(const FindAlternate& find_alternate) {
  const char* name = nullptr;
  const void* id = nullptr;
  const ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf_.get(), &name, &id);
  if (size == 0) return true;
  if (size < 0 || !find_alternate) return false;
  const base::Bytes build_id(static_cast<const std::uint8_t*>(id), static_cast<std::size_t>(size));
  alternate_ = open(find_alternate({name, code::image::build_id_text(build_id)}), {});
  if (!alternate_) return false;
  dwarf_setalt(dwarf_.get(), alternate_->get());
  size_ += alternate_->size_;
  return true;
}

base::Bytes Handle::section(std::string_view name) const {
  for (const Section& section : elf_.sections()) {
    if (debug_name(section) != name) continue;
    // Bytes that libdw has uncompressed.
    const Elf_Data* const data = elf_rawdata(section.handle, nullptr);
    if (data == nullptr || data->d_buf == nullptr) return {};
    return {static_cast<const std::uint8_t*>(data->d_buf), data->d_size};
  }
  return {};
}

}  // namespace ptkit::code::dwarf
