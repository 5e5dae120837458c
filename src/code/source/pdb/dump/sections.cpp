#include "code/source/pdb/dump/sections.h"

#include "code/source/pdb/dump/output_lines.h"

namespace ptkit::code::pdb {

bool Sections::begin_part(std::string_view title) {
  is_original_ = title == "Original Section Headers";
  return is_original_ || title == "Section Headers";
}

void Sections::read_line(std::string_view whole) {
  const std::string_view line = trim(whole);
  if (line.starts_with("SECTION HEADER #")) {
    is_rearranged_ = is_rearranged_ || is_original_;
    sections_.emplace_back();
  }
  if (sections_.empty()) return;
  Section& section = sections_.back();
  if (line.ends_with(" virtual size")) section.size = number_after(line, "", 16).value_or(0);
  if (line.ends_with(" virtual address")) section.address = number_after(line, "", 16).value_or(0);
  if (line == "IMAGE_SCN_MEM_EXECUTE") section.executable = true;
}

std::optional<std::uint32_t> Sections::code_address(std::uint64_t section,
                                                    std::uint64_t offset) const noexcept {
  if (section == 0 || section > sections_.size()) return std::nullopt;
  const Section& found = sections_[section - 1];
  if (!found.executable || offset >= found.size || found.address > UINT32_MAX ||
      offset > UINT32_MAX - found.address)
    return std::nullopt;
  return static_cast<std::uint32_t>(found.address + offset);
}

}  // namespace ptkit::code::pdb
