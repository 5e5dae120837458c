// Functions that a file takes from others: the loader writes their addresses into slots of the import address
// tables (PE) or of the global offset table (ELF), and code calls through these.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "code/image/files/segments.h"
#include "trace/bundle.h"

namespace ptkit::code::image {

class PeFile;

// Import slots by the data of a file.
struct ImportSlots {
  struct Slot {
    std::string name;
    std::string module;  // that has the function: "KERNEL32.dll", "libc.so.6"; empty: the file does not say
  };
  bool is_64_bit = true;
  std::uint64_t linked_base = 0;
  std::uint64_t table = 0;              // RVA that slots of position-independent 32-bit code are relative to
  std::map<std::uint64_t, Slot> slots;  // by RVA
};

// Valid as long as its Imports object.
struct Import {
  std::string_view name;    // "puts", "ExAllocatePool", or "WS2_32!Ordinal23" as WinDbg writes it
  std::string_view module;  // as of ImportSlots
};

class Imports {
 public:
  Imports() = default;
  // Empty if the file is no ELF program or library and no PE file, or imports nothing.
  explicit Imports(base::Bytes file);
  explicit Imports(const PeFile& file);
  // Those of a file of a bundle: by its contents, or else as the recorder stored them.
  [[nodiscard]] static Imports of(const trace::ImageFile& file);

  [[nodiscard]] bool empty() const noexcept { return slots_.empty(); }
  // The function of the slot that the indirect CALL or JMP at `address` reads. `code` begins at the
  // instruction, which lies at `rva`. Without a name: it is no such branch.
  [[nodiscard]] Import called(base::Bytes code, std::uint64_t rva, std::uint64_t address) const noexcept;
  // As of image::rva_of().
  [[nodiscard]] std::optional<std::uint64_t> rva_of(const trace::CodeRegion& region,
                                                    std::uint64_t file_offset) const noexcept {
    return image::rva_of(segments_, region, file_offset);
  }
  // Without names of files: modules, also those before "!Ordinal23", are named "module-1".
  [[nodiscard]] Imports redacted() const;

  // The form in bundles (docs/bundle-format.md). Empty if there is no slot.
  [[nodiscard]] std::vector<std::uint8_t> encode() const;
  // nullopt: damaged.
  [[nodiscard]] static std::optional<Imports> decode(base::Bytes bytes);

 private:
  struct Slot {
    std::uint64_t rva = 0;
    std::uint32_t name = 0;  // where its name begins
    std::uint32_t length = 0;
    std::uint32_t module = 0;  // 1: the first one; 0: not known
  };

  [[nodiscard]] Import at(std::uint64_t rva) const noexcept;
  [[nodiscard]] std::string_view name_of(const Slot& slot) const noexcept {
    return std::string_view(names_).substr(slot.name, slot.length);
  }
  Imports(const ImportSlots& slots, std::vector<FileSegment> segments);
  // Slots are added by RVA.
  void add(std::uint64_t rva, std::string_view name, std::uint32_t module);

  bool is_64_bit_ = true;
  std::uint64_t linked_base_ = 0;
  std::uint64_t table_ = 0;            // 0: none
  std::vector<FileSegment> segments_;  // of code
  std::vector<std::string> modules_;
  std::string names_;
  std::vector<Slot> slots_;  // sorted by RVA

  friend class ImportsDecoder;
};

}  // namespace ptkit::code::image
