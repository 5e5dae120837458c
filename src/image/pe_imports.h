// Functions that a PE file imports: the loader writes their addresses into slots of the import address tables
// (IAT), and code calls through these.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "image/pe_file.h"

namespace ptkit::image {

class PeImports {
 public:
  // Empty if the file is no PE file or imports nothing.
  explicit PeImports(base::Bytes file);

  [[nodiscard]] bool empty() const noexcept { return slots_.empty(); }
  // The function of the slot that the indirect CALL or JMP at `address` reads: "ExAllocatePool", or
  // "WS2_32!Ordinal23" as WinDbg writes it. `code` begins at the instruction, which lies at `rva`. Empty: it
  // is no such branch.
  [[nodiscard]] std::string_view called(base::Bytes code, std::uint64_t rva,
                                        std::uint64_t address) const noexcept;

 private:
  void read(const PeFile& file);
  [[nodiscard]] std::string_view at(std::uint64_t rva) const noexcept;

  bool is_64_bit_ = false;
  std::uint64_t linked_base_ = 0;
  std::map<std::uint64_t, std::string> slots_;  // by RVA
};

}  // namespace ptkit::image
