// RAII wrapper of libdw: the DWARF of one file in memory. Internal to src/dwarf.
#pragma once

#include <elfutils/libdw.h>

#include <memory>
#include <string_view>

#include "image/elf_file.h"
#include "trace/buffer.h"

namespace ptkit::dwarf {

class Handle {
 public:
  // Null if the file has no DWARF, or more of it than fits into memory.
  [[nodiscard]] static std::unique_ptr<Handle> open(trace::TraceBuffer file);

  [[nodiscard]] Dwarf* get() const noexcept { return dwarf_.get(); }
  [[nodiscard]] const image::ElfFile& elf() const noexcept { return elf_; }
  // The uncompressed contents of a debug section, by its name without the dot.
  [[nodiscard]] base::Bytes section(std::string_view name) const;
  // Bytes of all debug sections, uncompressed.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  struct Closer {
    void operator()(Dwarf* dwarf) const noexcept { dwarf_end(dwarf); }
  };
  Handle(trace::TraceBuffer file, image::ElfFile elf) : file_(std::move(file)), elf_(std::move(elf)) {}

  trace::TraceBuffer file_;
  image::ElfFile elf_;  // before dwarf_, which uses it to its end
  std::unique_ptr<Dwarf, Closer> dwarf_;
  std::uint64_t size_ = 0;
};

}  // namespace ptkit::dwarf
