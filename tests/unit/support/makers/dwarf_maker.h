// Generates ELF files with DWARF 4 of one unit, right or wrong, so that the tests need no compiler.
#pragma once

#include <dwarf.h>

#include <string_view>

#include "unit/support/makers/elf_maker.h"

namespace ptkit::test {

class DwarfMaker {
 public:
  static constexpr std::uint64_t kText = 0x1000;
  static constexpr std::uint32_t kTextSize = 0x1000;

  DwarfMaker() {
    abbreviation(kUnit, DW_TAG_compile_unit, true,
                 {{DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, DW_FORM_data4}});
    abbreviation(
        kFunction, DW_TAG_subprogram, true,
        {{DW_AT_name, DW_FORM_string}, {DW_AT_low_pc, DW_FORM_addr}, {DW_AT_high_pc, DW_FORM_data4}});
    abbreviation(kInlined, DW_TAG_inlined_subroutine, true,
                 {{DW_AT_abstract_origin, DW_FORM_ref4},
                  {DW_AT_low_pc, DW_FORM_addr},
                  {DW_AT_high_pc, DW_FORM_data4},
                  {DW_AT_call_line, DW_FORM_data1}});
    abbreviation(kNamed, DW_TAG_subprogram, false, {{DW_AT_name, DW_FORM_string}});
    abbreviation(kReference, DW_TAG_subprogram, false, {{DW_AT_abstract_origin, DW_FORM_ref4}});
    abbreviation(kBlock, DW_TAG_lexical_block, true, {});
    abbreviation(kSkipped, DW_TAG_lexical_block, true, {{DW_AT_sibling, DW_FORM_ref4}});
    abbreviation(kScattered, DW_TAG_subprogram, false, {{DW_AT_ranges, DW_FORM_sec_offset}});
    info.resize(kHeader);
    entry(kUnit);
    put<std::uint64_t>(kText);
    put<std::uint32_t>(kTextSize);
  }

  // Each returns the offset of the entry in the unit. end() ends the entries below one that has children.
  std::uint32_t function(std::string_view name, std::uint64_t begin, std::uint32_t size) {
    const std::uint32_t at = entry(kFunction);
    text(name);
    put(begin);
    put(size);
    return at;
  }
  std::uint32_t inlined(std::uint32_t origin, std::uint64_t begin, std::uint32_t size, std::uint8_t line) {
    const std::uint32_t at = entry(kInlined);
    put(origin);
    put(begin);
    put(size);
    put(line);
    return at;
  }
  std::uint32_t named(std::string_view name) {
    const std::uint32_t at = entry(kNamed);
    text(name);
    return at;
  }
  std::uint32_t reference(std::uint32_t origin) {
    const std::uint32_t at = entry(kReference);
    put(origin);
    return at;
  }
  std::uint32_t block() { return entry(kBlock); }
  std::uint32_t skipped(std::uint32_t sibling) {
    const std::uint32_t at = entry(kSkipped);
    put(sibling);
    return at;
  }
  void scattered() {
    entry(kScattered);
    put<std::uint32_t>(0);
  }
  void end() { put<std::uint8_t>(0); }
  // Adds an abbreviation with so many attributes, which take no bytes of an entry. No entry has it.
  void unused_abbreviation(std::size_t attributes) {
    constexpr Attribute kFlag{DW_AT_artificial, DW_FORM_flag_present};
    abbreviation(kUnused, DW_TAG_variable, false, std::vector<Attribute>(attributes, kFlag));
  }
  void has_line_section(bool has) { has_line_section_ = has; }
  // Adds units without an entry, which have the same abbreviations.
  void empty_units(std::size_t count) { empty_units_ = count; }

  ByteVector make() {
    end();
    const auto length = static_cast<std::uint32_t>(info.size() - 4);
    std::memcpy(info.data(), &length, sizeof length);
    info[4] = 4;  // version
    info[kHeader - 1] = sizeof(std::uint64_t);
    abbreviations.push_back(0);
    for (std::size_t i = 0; i < empty_units_; ++i) {
      put<std::uint32_t>(kHeader - 4);
      info.insert(info.end(), {4, 0, 0, 0, 0, 0, sizeof(std::uint64_t)});
    }
    ElfMaker<Elf64Types> elf;
    elf.segments = {{PT_LOAD, kText, 0, kTextSize, kTextSize}};
    elf.add({".debug_abbrev", SHT_PROGBITS, 0, 0, abbreviations});
    elf.add({".debug_info", SHT_PROGBITS, 0, 0, info});
    elf.add({".debug_ranges", SHT_PROGBITS, 0, 0, ranges});
    if (has_line_section_) elf.add({".debug_line", SHT_PROGBITS, 0, 0, {0}});
    ByteVector file = elf.make();
    file.resize(std::max<std::size_t>(file.size(), kTextSize));
    return file;
  }

  ByteVector info;    // .debug_info
  ByteVector ranges;  // .debug_ranges

 private:
  static constexpr std::size_t kHeader = 11;
  enum Code : std::uint8_t {
    kUnit = 1,
    kFunction,
    kInlined,
    kNamed,
    kReference,
    kBlock,
    kSkipped,
    kScattered,
    kUnused
  };
  struct Attribute {
    std::uint8_t name;
    std::uint8_t form;
  };

  void abbreviation(Code code, std::uint8_t tag, bool has_children,
                    const std::vector<Attribute>& attributes) {
    abbreviations.insert(abbreviations.end(), {code, tag, static_cast<std::uint8_t>(has_children)});
    for (const Attribute& one : attributes) abbreviations.insert(abbreviations.end(), {one.name, one.form});
    abbreviations.insert(abbreviations.end(), {0, 0});
  }
  std::uint32_t entry(Code code) {
    info.push_back(code);
    return static_cast<std::uint32_t>(info.size() - 1);
  }
  template <typename T>
  void put(T value) {
    append(info, value);
  }
  void text(std::string_view name) {
    info.insert(info.end(), name.begin(), name.end());
    info.push_back(0);
  }

  ByteVector abbreviations;
  std::size_t empty_units_ = 0;
  bool has_line_section_ = false;
};

}  // namespace ptkit::test
