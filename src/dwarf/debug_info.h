// Source lines and inlined functions by address, from the DWARF (versions 2 to 5) of an ELF file. libdw reads
// it; docs/source-lines.md says what bounds its time and memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "trace/buffer.h"

namespace ptkit::dwarf {

struct SourceLine {
  std::string_view file;   // path as the compiler has it; empty: not known
  std::uint32_t line = 0;  // 0: code that belongs to no line
};

// A function, or an inlined call of one.
struct Frame {
  std::string_view function;  // not demangled; empty: not known
  SourceLine at;
};

// Addresses are those that the file was linked for (p_vaddr). Each unit and function is read at the first
// lookup in it. Thread-safe. Texts live as long as the object.
class DebugInfo {
 public:
  // Null: the file is no ELF program or library for x86, or has no debug information that can be used.
  [[nodiscard]] static std::shared_ptr<DebugInfo> open(trace::TraceBuffer file);
  ~DebugInfo();

  [[nodiscard]] SourceLine line_at(std::uint64_t address) const;
  // The functions at an address, the innermost one first. A caller's line is that of the call. Without a
  // function, one frame has the line, if that is known.
  [[nodiscard]] std::vector<Frame> frames_at(std::uint64_t address) const;
  // Whether the file has more debug information than its size justifies, so that some was not read.
  [[nodiscard]] bool is_cut() const;

 private:
  class Impl;
  explicit DebugInfo(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptkit::dwarf
