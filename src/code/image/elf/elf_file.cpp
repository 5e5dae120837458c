#include "code/image/elf/elf_file.h"

#include <cstdlib>
#include <cstring>

namespace ptkit::code::image {
namespace {

base::Failure bad(std::uint64_t offset, std::string detail) {
  return {base::Status::BAD_FILE, offset, std::move(detail)};
}

// Of a section. Headers of a damaged file may share names of any length.
constexpr std::size_t kLongestName = 255;

// libelf requires a call of elf_version() with the caller's ELF version before all other calls.
bool is_library_ready() noexcept {
  static const bool ready = elf_version(EV_CURRENT) != EV_NONE;
  return ready;
}

// The number of a thread's last error is allocated at its first use, and glibc ends the process if there is
// no memory. The memory that is found here is what it gets.
bool has_room_for_errors() noexcept {
  void* volatile room = std::malloc(sizeof(int));  // volatile: else compilers leave both calls out
  std::free(room);
  if (room != nullptr) static_cast<void>(elf_errno());
  return room != nullptr;
}

std::string library_error() {
  const char* text = elf_errmsg(-1);
  return text != nullptr ? text : "unknown error";
}

}  // namespace

base::Result<ElfFile> ElfFile::open(base::Bytes bytes) {
  if (!is_library_ready())
    return base::Failure{base::Status::UNSUPPORTED, 0, "libelf is of an unknown version"};
  if (!has_room_for_errors()) return base::Failure{base::Status::NO_MEMORY, 0, {}};
  if (bytes.size() < SELFMAG || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0) {
    return bad(0, "no ELF file: it does not begin with 7f 45 4c 46");
  }
  ElfFile file;
  file.bytes_ = bytes;
  // libelf takes a pointer to mutable memory, but writes to it only in elf_update().
  file.elf_.reset(elf_memory(const_cast<char*>(reinterpret_cast<const char*>(bytes.data())), bytes.size()));
  if (!file.elf_ || elf_kind(file.elf_.get()) != ELF_K_ELF)
    return bad(0, "damaged ELF file: " + library_error());
  if (gelf_getehdr(file.elf_.get(), &file.header_) == nullptr) {
    return bad(0, "damaged ELF header: " + library_error());
  }
  const auto machine = file.header_.e_machine;
  if (file.header_.e_ident[EI_DATA] != ELFDATA2LSB || (machine != EM_386 && machine != EM_X86_64)) {
    return bad(offsetof(Elf64_Ehdr, e_machine),
               "an ELF file for machine " + std::to_string(machine) + ", not for x86");
  }
  std::size_t count = 0;
  if (elf_getphdrnum(file.elf_.get(), &count) != 0) {
    return bad(file.header_.e_phoff, "damaged program headers: " + library_error());
  }
  for (std::size_t i = 0; i < count; ++i) {
    GElf_Phdr segment;
    if (gelf_getphdr(file.elf_.get(), static_cast<int>(i), &segment) == nullptr) {
      return bad(file.header_.e_phoff,
                 "damaged program header " + std::to_string(i) + ": " + library_error());
    }
    file.segments_.push_back(segment);
  }
  return file;
}

std::vector<ElfFile::Section> ElfFile::sections() const {
  std::vector<Section> found;
  std::size_t names = 0;
  const bool has_names = elf_getshdrstrndx(elf_.get(), &names) == 0;
  for (Elf_Scn* handle = elf_nextscn(elf_.get(), nullptr); handle != nullptr;
       handle = elf_nextscn(elf_.get(), handle)) {
    Section section;
    section.handle = handle;
    if (gelf_getshdr(handle, &section.header) == nullptr) continue;
    const char* name = has_names ? elf_strptr(elf_.get(), names, section.header.sh_name) : nullptr;
    if (name != nullptr) section.name.assign(name, ::strnlen(name, kLongestName));
    found.push_back(std::move(section));
  }
  return found;
}

std::uint64_t ElfFile::stub_bytes(const Section& section) {
  // LLD puts the stubs of IFUNCs into a section of their own.
  const bool is_plt = section.name == ".plt" || section.name == ".iplt" || section.name.starts_with(".plt.");
  if (!is_plt) return 0;
  const GElf_Shdr& header = section.header;
  if (header.sh_entsize == 8 || header.sh_entsize == 16) return header.sh_entsize;
  return section.name == ".plt.got" && header.sh_size % 16 != 0 ? 8 : 16;
}

std::optional<std::uint64_t> ElfFile::global_offsets(const std::vector<Section>& sections) {
  std::optional<std::uint64_t> address;
  for (const Section& section : sections) {
    if (section.name == ".got.plt") return section.header.sh_addr;
    if (section.name == ".got") address = section.header.sh_addr;
  }
  return address;
}

base::Bytes ElfFile::contents(const Section& section) const noexcept {
  const GElf_Shdr& header = section.header;
  if (header.sh_type == SHT_NOBITS || header.sh_offset > bytes_.size()) return {};
  if (header.sh_size > bytes_.size() - header.sh_offset) return {};
  return bytes_.subspan(static_cast<std::size_t>(header.sh_offset), static_cast<std::size_t>(header.sh_size));
}

std::optional<std::uint64_t> ElfFile::file_offset(std::uint64_t address) const noexcept {
  for (const GElf_Phdr& segment : segments_) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const std::uint64_t inside = address - segment.p_vaddr;
    if (inside < segment.p_filesz && segment.p_offset + inside < bytes_.size())
      return segment.p_offset + inside;
  }
  return std::nullopt;
}

}  // namespace ptkit::code::image
