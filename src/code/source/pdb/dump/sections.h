// Sections that `llvm-pdbutil dump --section-headers` lists. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ptkit::code::pdb {

class Sections {
 public:
  // Whether the part with this title is about sections: its lines are to be read.
  [[nodiscard]] bool begin_part(std::string_view title);
  void read_line(std::string_view line);

  [[nodiscard]] bool empty() const noexcept { return sections_.empty(); }
  // Whether the code was rearranged after linking (OMAP), so that no address is known.
  [[nodiscard]] bool is_rearranged() const noexcept { return is_rearranged_; }
  // The RVA of code, by the section's number, from 1 on; nullopt: it is no code.
  [[nodiscard]] std::optional<std::uint32_t> code_address(std::uint64_t section,
                                                          std::uint64_t offset) const noexcept;

 private:
  struct Section {
    std::uint64_t address = 0;  // RVA
    std::uint64_t size = 0;
    bool executable = false;
  };
  std::vector<Section> sections_;
  bool is_original_ = false;  // the part is about those before code was rearranged
  bool is_rearranged_ = false;
};

}  // namespace ptkit::code::pdb
