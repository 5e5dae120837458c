// RAII wrapper of libdw: the DWARF of one file in memory. Internal to src/code/source/dwarf.
#pragma once

#include <elfutils/libdw.h>

#include <memory>
#include <string_view>

#include "code/image/elf/elf_file.h"
#include "code/source/budget.h"
#include "code/source/dwarf/debug_info.h"
#include "trace/buffer.h"

namespace ptkit::code::dwarf {

class Handle {
 public:
  // Null if the file has no DWARF, or refers to a file that is not found.
  [[nodiscard]] static std::unique_ptr<Handle> open(trace::TraceBuffer file,
                                                    const FindAlternate& find_alternate);

  [[nodiscard]] Dwarf* get() const noexcept { return dwarf_.get(); }
  [[nodiscard]] const code::image::ElfFile& elf() const noexcept { return elf_; }
  // The uncompressed contents of a debug section, by its name without the dot.
  [[nodiscard]] base::Bytes section(std::string_view name) const;
  // How many entries, ranges and bytes may be visited: an entry has several bytes, and a lookup visits each
  // at most three times.
  // Fewer where libdw needs longer for each: it reads whole abbreviations.
  [[nodiscard]] code::source::Budget steps() const noexcept {
    return code::source::Budget((kLeastSteps + size_) / weight_);
  }
  // Those for the bytes of its sections alone.
  [[nodiscard]] std::uint64_t steps_of_bytes() const noexcept { return size_ / weight_; }
  // Whether reading it would take more memory or time than such a file should. Then get() is null.
  [[nodiscard]] bool is_refused() const noexcept { return dwarf_ == nullptr; }
  // Memory that libdw may still take, in bytes.
  [[nodiscard]] code::source::Budget& memory() noexcept { return memory_; }

 private:
  static constexpr std::uint64_t kLeastSteps = 1'000'000;
  static constexpr std::uint64_t kUsualAbbreviation = 48;  // bytes

  struct Closer {
    void operator()(Dwarf* dwarf) const noexcept { dwarf_end(dwarf); }
  };
  [[nodiscard]] bool add_alternate(const FindAlternate& find_alternate);
  Handle(trace::TraceBuffer file, code::image::ElfFile elf, std::uint64_t memory)
      : file_(std::move(file)), elf_(std::move(elf)), memory_(memory) {}

  trace::TraceBuffer file_;
  code::image::ElfFile elf_;           // before dwarf_, which uses it to its end
  std::unique_ptr<Handle> alternate_;  // the same
  std::unique_ptr<Dwarf, Closer> dwarf_;
  std::uint64_t size_ = 0;  // bytes of all debug sections, uncompressed
  std::uint64_t weight_ = 1;
  code::source::Budget memory_;
};

}  // namespace ptkit::code::dwarf
