// Functions that a file takes from others: the loader writes their addresses into slots of the import address
// tables (PE) or of the global offset table (ELF), and code calls through these.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "image/segments.h"
#include "trace/bundle.h"

namespace ptkit::image {

// What a file says of its slots.
struct ImportSlots {
  bool is_64_bit = true;
  std::uint64_t linked_base = 0;
  std::uint64_t table = 0;  // RVA that slots of position-independent 32-bit code are relative to; 0: none
  std::map<std::uint64_t, std::string> names;  // by RVA of the slot
};

class Imports {
 public:
  Imports() = default;
  // Empty if the file is no ELF program or library and no PE file, or imports nothing.
  explicit Imports(base::Bytes file);

  [[nodiscard]] bool empty() const noexcept { return slots_.names.empty(); }
  // The function of the slot that the indirect CALL or JMP at `address` reads: "puts", "ExAllocatePool", or
  // "WS2_32!Ordinal23" as WinDbg writes it. `code` begins at the instruction, which lies at `rva`. Empty: it
  // is no such branch.
  [[nodiscard]] std::string_view called(base::Bytes code, std::uint64_t rva,
                                        std::uint64_t address) const noexcept;
  // As of image::rva_of().
  [[nodiscard]] std::optional<std::uint64_t> rva_of(const trace::CodeRegion& region,
                                                    std::uint64_t file_offset) const noexcept {
    return image::rva_of(segments_, region, file_offset);
  }

 private:
  [[nodiscard]] std::string_view at(std::uint64_t rva) const noexcept;

  ImportSlots slots_;
  std::vector<FileSegment> segments_;  // of code
};

}  // namespace ptkit::image
