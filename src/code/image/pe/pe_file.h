// The headers of a PE file in memory, with bounds checks. Internal to src/code/image.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "code/image/pe/pe_layout.h"

namespace ptkit::code::image {

[[nodiscard]] inline std::uint32_t load_u32(base::Bytes bytes, std::size_t at) noexcept {
  return static_cast<std::uint32_t>(base::load_le<4>(bytes.data() + at));
}

class PeFile {
 public:
  struct Section {
    std::string_view name;
    std::uint32_t address = 0;    // relative to the image's base
    std::uint32_t size = 0;       // in memory
    std::uint32_t offset = 0;     // in the file
    std::uint32_t file_size = 0;  // bytes in the file, at most `size`; in a dump, all up to the next section
    std::uint32_t pointer = 0;    // PointerToRawData and SizeOfRawData, whatever the layout
    std::uint32_t raw_size = 0;
    bool executable = false;
  };
  struct Directory {
    std::uint32_t address = 0;  // relative
    std::uint32_t size = 0;
  };
  // The file's PDB.
  struct Pdb {
    std::string id;    // GUID and age, "0123456789abcdef0123456789abcdef-1"; empty: not known
    std::string name;  // without folders
  };
  // Numbers of data directories.
  static constexpr unsigned kExports = 0;
  static constexpr unsigned kImports = 1;
  static constexpr unsigned kResources = 2;
  static constexpr unsigned kFunctions = 3;  // "exception"
  static constexpr unsigned kRelocations = 5;
  static constexpr unsigned kDebug = 6;
  static constexpr unsigned kDelayImports = 13;
  static constexpr std::size_t kSectionBytes = 40;  // of a row of the section table

  // The bytes must outlive the object. BAD_FILE with a reason if this is no PE file for x86. A dump of memory
  // may be cut: sections have the bytes that are there.
  [[nodiscard]] static base::Result<PeFile> open(base::Bytes bytes, PeLayout layout = PeLayout::FILE);
  // For a file of which the end may be missing.
  [[nodiscard]] static base::Result<PeFile> open_part(base::Bytes bytes);

  [[nodiscard]] base::Bytes bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t linked_base() const noexcept { return base_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }  // SizeOfImage; 0: unknown
  [[nodiscard]] const std::vector<Section>& sections() const noexcept { return sections_; }
  [[nodiscard]] Directory directory(unsigned number) const noexcept;
  [[nodiscard]] std::uint32_t symbol_table() const noexcept { return symbol_table_; }  // offset, 0: none
  [[nodiscard]] std::uint32_t symbol_count() const noexcept { return symbol_count_; }
  [[nodiscard]] bool is_64_bit() const noexcept { return is_64_bit_; }
  [[nodiscard]] std::size_t header_offset() const noexcept { return header_offset_; }  // of the PE header
  [[nodiscard]] std::uint32_t header_size() const noexcept { return header_size_; }  // bytes before sections
  [[nodiscard]] std::size_t section_table() const noexcept { return section_table_; }  // its offset

  [[nodiscard]] Pdb pdb() const;
  // The id of the PDB; without one, time stamp and SizeOfImage, "65a1b2c3-1d000"; empty: the file has
  // neither. It stays the same when a file is patched. Its form differs from a build-id's, so that no cache
  // of decoded code uses it as a key.
  [[nodiscard]] std::string id() const;

  // `size` bytes of the file, or none if the file is shorter.
  [[nodiscard]] base::Bytes at(std::uint64_t offset, std::uint64_t size) const noexcept;
  [[nodiscard]] base::Bytes at_address(std::uint32_t address, std::uint64_t size) const noexcept;
  // The null-terminated text at `offset`; empty if it does not end in the file.
  [[nodiscard]] std::string_view text_at(std::uint64_t offset) const noexcept;
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint32_t address) const noexcept;

 private:
  explicit PeFile(base::Bytes bytes) : bytes_(bytes) {}
  [[nodiscard]] const char* read(bool whole);  // the reason of a failure, or null
  [[nodiscard]] const char* read_sections(unsigned count, bool whole);
  void lie_in_memory();
  [[nodiscard]] base::Bytes code_view(base::Bytes row) const noexcept;

  base::Bytes bytes_;
  std::uint64_t base_ = 0;
  std::uint32_t time_stamp_ = 0;
  std::uint32_t size_ = 0;
  std::size_t header_offset_ = 0;
  std::uint32_t header_size_ = 0;
  std::size_t section_table_ = 0;
  std::vector<Section> sections_;
  std::vector<Section> by_address_;  // sections with bytes
  std::vector<Directory> directories_;
  std::uint32_t symbol_table_ = 0;
  std::uint32_t symbol_count_ = 0;
  bool is_64_bit_ = false;
};

}  // namespace ptkit::code::image
