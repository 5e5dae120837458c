// An RAII wrapper of libelf: one ELF file in memory, with bounds checks. For src/code/image,
// src/code/source/dwarf and src/code/bounds.
#pragma once

#include <gelf.h>
#include <libelf.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::code::image {

class ElfFile {
 public:
  // The bytes must outlive the object. BAD_FILE with a reason if this is no ELF file for x86.
  [[nodiscard]] static base::Result<ElfFile> open(base::Bytes bytes);

  [[nodiscard]] const GElf_Ehdr& header() const noexcept { return header_; }
  [[nodiscard]] const std::vector<GElf_Phdr>& segments() const noexcept { return segments_; }
  [[nodiscard]] base::Bytes bytes() const noexcept { return bytes_; }
  [[nodiscard]] Elf* get() const noexcept { return elf_.get(); }

  struct Section {
    Elf_Scn* handle = nullptr;
    GElf_Shdr header{};
    std::string name;  // its first 255 bytes
  };
  [[nodiscard]] std::vector<Section> sections() const;  // the readable sections, by index
  // Bytes of each stub of a procedure linkage table (PLT). 0: the section is none.
  [[nodiscard]] static std::uint64_t stub_bytes(const Section& section);
  // The linked address that slots of position-independent 32-bit code are relative to. nullopt: none.
  [[nodiscard]] static std::optional<std::uint64_t> global_offsets(const std::vector<Section>& sections);
  // The contents of a section; empty if the file has none.
  [[nodiscard]] base::Bytes contents(const Section& section) const noexcept;
  // The file offset of a virtual address; nullopt if no loadable segment has file bytes there.
  [[nodiscard]] std::optional<std::uint64_t> file_offset(std::uint64_t address) const noexcept;

 private:
  struct Closer {
    void operator()(Elf* elf) const noexcept { elf_end(elf); }
  };
  base::Bytes bytes_;
  std::unique_ptr<Elf, Closer> elf_;
  GElf_Ehdr header_{};
  std::vector<GElf_Phdr> segments_;
};

}  // namespace ptkit::code::image
