// Sections of the module that a PDB is of. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace ptkit::code::pdb {

struct Section {
  std::uint32_t address = 0;  // RVA
  std::uint32_t size = 0;
  bool executable = false;
};

struct Sections {
  std::vector<Section> all;

  // The RVA of code, by the section's number, from 1 on; nullopt: it is no code.
  [[nodiscard]] std::optional<std::uint32_t> code_address(std::uint32_t section,
                                                          std::uint32_t offset) const noexcept {
    if (section == 0 || section > all.size()) return std::nullopt;
    const Section& found = all[section - 1];
    if (!found.executable || offset >= found.size || offset > UINT32_MAX - found.address) return std::nullopt;
    return found.address + offset;
  }
};

}  // namespace ptkit::code::pdb
