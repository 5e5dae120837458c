// Source lines and inlined functions by address, from the DWARF (versions 2 to 5) of an ELF file. libdw reads
// it; docs/source-lines.md says what bounds its time and memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "code/source/source_info.h"
#include "trace/buffer.h"

namespace ptkit::code::dwarf {

class LineTable;

// The file that has what several debug files have in common (dwz).
struct AltLink {
  std::string name;
  std::string build_id;  // hex
};
using FindAlternate = std::function<trace::TraceBuffer(const AltLink&)>;

// The file that has the functions of a unit (-gsplit-dwarf).
struct SplitLink {
  std::string name;    // of a .dwo file; empty: packages (.dwp) are looked for
  std::string folder;  // where the compiler ran
};
using FindSplit = std::function<std::vector<trace::TraceBuffer>(const SplitLink&)>;

// Addresses are p_vaddr. Each unit and function is read at the first lookup in it.
class DebugInfo final : public code::source::SourceInfo {
 public:
  // Null: the file is no ELF program or library for x86, or has no debug information that can be used.
  // `find_alternate` gets what the file names in .gnu_debugaltlink, and returns that file, or nothing.
  // `find_split` returns the files that may be what it gets; their ids decide.
  [[nodiscard]] static std::shared_ptr<DebugInfo> open(trace::TraceBuffer file,
                                                       const FindAlternate& find_alternate = {},
                                                       FindSplit find_split = {});
  ~DebugInfo() override;

  // The line table of the unit that has the code from `first` to `last`; null: none has it.
  struct UnitLines {
    const LineTable* lines = nullptr;
    std::uint64_t first = 1;
    std::uint64_t last = 0;
  };
  [[nodiscard]] UnitLines lines_at(std::uint64_t address) const;  // for LineCursor
  [[nodiscard]] std::unique_ptr<code::source::LineCursor> line_cursor() const override;
  [[nodiscard]] std::vector<code::source::Frame> frames_at(std::uint64_t address) const override;
  [[nodiscard]] code::source::SourceLine declaration_at(std::uint64_t address) const override;
  [[nodiscard]] code::source::InlinedSpan inlined_at(std::uint64_t address) const override;
  [[nodiscard]] code::source::InlinedCall inlined_call(std::uint32_t number) const override;
  [[nodiscard]] bool begins_call(std::uint32_t number, std::uint64_t address) const override;
  // Whether the file has more debug information than its size justifies, so that some was not read.
  [[nodiscard]] bool is_cut() const;
  // The name of a file with functions that was looked for and is not there; empty: none.
  [[nodiscard]] std::string missing_split() const;

 private:
  class Impl;
  explicit DebugInfo(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The line of a near address is found without the lock of the file, too.
class LineCursor final : public code::source::LineCursor {
 public:
  // `info` must outlive it.
  explicit LineCursor(const DebugInfo& info) noexcept : info_(&info) {}

  [[nodiscard]] code::source::SourceLine at(std::uint64_t address) override;

 private:
  const DebugInfo* info_;
  DebugInfo::UnitLines unit_;
  std::size_t row_ = 0;  // in its table
};

}  // namespace ptkit::code::dwarf
