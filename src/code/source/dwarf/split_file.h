// Files with the split units of a program (-gsplit-dwarf). Internal to src/code/source/dwarf.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "code/image/elf/elf_file.h"
#include "code/source/budget.h"
#include "code/source/dwarf/handle.h"
#include "trace/buffer.h"

namespace ptkit::code::dwarf {

// A section of a unit, by its name without the dot and ".dwo".
struct UnitSection {
  std::string_view name;
  std::vector<std::uint8_t> contents;
};

// A file beside an object file (.dwo), or a package of many of them (.dwp; DWARF 5, section 7.3.5, and what
// GNU tools had before). libdw reads no packages before version 0.192.
class SplitFile {
 public:
  // Null: the file has no DWARF, or more than it should.
  [[nodiscard]] static std::unique_ptr<SplitFile> open(trace::TraceBuffer file);

  // The sections that the unit of this id lies in, without those of variables; of a package, its parts of
  // them. `memory`: what they may take.
  [[nodiscard]] std::vector<UnitSection> sections_of(std::uint64_t id, code::source::Budget& memory) const;
  [[nodiscard]] base::Bytes bytes() const noexcept { return file_.bytes(); }

 private:
  SplitFile(trace::TraceBuffer file, code::image::ElfFile elf)
      : file_(std::move(file)), elf_(std::move(elf)) {}
  [[nodiscard]] bool is_package() const noexcept { return !index_.empty(); }
  [[nodiscard]] base::Bytes section(std::string_view name) const;
  [[nodiscard]] base::Bytes contents(std::string_view name) const;

  trace::TraceBuffer file_;
  code::image::ElfFile elf_;
  base::Bytes index_;               // of a package
  std::unique_ptr<Handle> handle_;  // of other files: libdw uncompresses their sections
};

// Those strings of a package that the offsets of a unit lead to, as a package has the strings of all units in
// one section. The offsets become those of the result. `memory`: what they may take. Empty if that is not
// enough, or an offset leads nowhere.
[[nodiscard]] std::vector<std::uint8_t> take_strings(base::Bytes strings, std::vector<std::uint8_t>& offsets,
                                                     code::source::Budget& memory);

}  // namespace ptkit::code::dwarf
