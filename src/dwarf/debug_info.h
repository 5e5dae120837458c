// Source lines and inlined functions by address, from the DWARF (versions 2 to 5) of an ELF file. libdw reads
// it; docs/source-lines.md says what bounds its time and memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trace/buffer.h"

namespace ptkit::dwarf {

class LineTable;

struct SourceLine {
  std::string_view file;   // path as the compiler has it; empty: not known
  std::uint32_t line = 0;  // 0: code that belongs to no line
};

// A function, or an inlined call of one.
struct Frame {
  std::string_view function;  // not demangled; empty: not known
  SourceLine at;
};

// The file that has what several debug files have in common (dwz).
struct AltLink {
  std::string name;
  std::string build_id;  // hex
};
// A function's call that the compiler has inlined.
struct InlinedCall {
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t caller = kNone;  // number of the inlined call that it is in; kNone: it is in the function
  std::uint32_t level = 0;       // inlined calls that it is in, itself included
  std::uint64_t function = 0;  // the same for all calls of a function: by its name and its declaration's line
};
// Addresses [first, last] with the same inlined calls.
struct InlinedSpan {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint32_t call = InlinedCall::kNone;  // number of the innermost one in the file
};
// Calls that are in more inlined calls count as the code of these.
inline constexpr std::uint32_t kMostLevels = 128;

using FindAlternate = std::function<trace::TraceBuffer(const AltLink&)>;

// The file that has the functions of a unit (-gsplit-dwarf).
struct SplitLink {
  std::string name;    // of a .dwo file; empty: packages (.dwp) are looked for
  std::string folder;  // where the compiler ran
};
using FindSplit = std::function<std::vector<trace::TraceBuffer>(const SplitLink&)>;

// Addresses are those that the file was linked for (p_vaddr). Each unit and function is read at the first
// lookup in it. Thread-safe. Texts live as long as the object.
class DebugInfo {
 public:
  // Null: the file is no ELF program or library for x86, or has no debug information that can be used.
  // `find_alternate` gets what the file names in .gnu_debugaltlink, and returns that file, or nothing.
  // `find_split` returns the files that may be what it gets; their ids decide.
  [[nodiscard]] static std::shared_ptr<DebugInfo> open(trace::TraceBuffer file,
                                                       const FindAlternate& find_alternate = {},
                                                       FindSplit find_split = {});
  ~DebugInfo();

  // The line table of the unit that has the code from `first` to `last`; null: none has it.
  struct UnitLines {
    const LineTable* lines = nullptr;
    std::uint64_t first = 1;
    std::uint64_t last = 0;
  };
  [[nodiscard]] UnitLines lines_at(std::uint64_t address) const;  // for LineCursor
  // The functions at an address, the innermost one first. A caller's line is that of the call. Without a
  // function, one frame has the line, if that is known.
  [[nodiscard]] std::vector<Frame> frames_at(std::uint64_t address) const;
  // What is inlined at an address.
  [[nodiscard]] InlinedSpan inlined_at(std::uint64_t address) const;
  // The call with this number.
  [[nodiscard]] InlinedCall inlined_call(std::uint32_t number) const;
  // Whether the address is on the line on which the call begins; so it is if that is not known.
  [[nodiscard]] bool begins_call(std::uint32_t number, std::uint64_t address) const;
  // Whether the file has more debug information than its size justifies, so that some was not read.
  [[nodiscard]] bool is_cut() const;
  // The name of a file with functions that was looked for and is not there; empty: none.
  [[nodiscard]] std::string missing_split() const;

 private:
  class Impl;
  explicit DebugInfo(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ptkit::dwarf
