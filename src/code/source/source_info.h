// Source lines and inlined functions by address, from debug information in any of its formats.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace ptkit::code::source {

struct SourceLine {
  std::string_view file;   // path as the compiler has it; empty: not known
  std::uint32_t line = 0;  // 0: code that belongs to no line
};

// A function, or an inlined call of one.
struct Frame {
  std::string_view function;  // not demangled; empty: not known
  SourceLine at;
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

// Lines of many addresses. Remembers where the last line was found: that of a near address is found without a
// search.
class LineCursor {
 public:
  virtual ~LineCursor() = default;
  [[nodiscard]] virtual SourceLine at(std::uint64_t address) = 0;
};

// Addresses are those that the file was linked for. Thread-safe. Texts live as long as the object.
class SourceInfo {
 public:
  virtual ~SourceInfo() = default;

  // The object must outlive the cursor.
  [[nodiscard]] virtual std::unique_ptr<LineCursor> line_cursor() const = 0;
  // The functions at an address, the innermost one first. A caller's line is that of the call. Without a
  // function, one frame has the line, if that is known.
  [[nodiscard]] virtual std::vector<Frame> frames_at(std::uint64_t address) const = 0;
  // Where the function at an address is declared; no file: not known.
  [[nodiscard]] virtual SourceLine declaration_at(std::uint64_t /*address*/) const { return {}; }
  // The inlined calls at an address, and the addresses around it that have the same ones.
  [[nodiscard]] virtual InlinedSpan inlined_at(std::uint64_t address) const = 0;
  // The call with this number.
  [[nodiscard]] virtual InlinedCall inlined_call(std::uint32_t number) const = 0;
  // Whether the address is on the line on which the call begins; so it is if that is not known.
  [[nodiscard]] virtual bool begins_call(std::uint32_t number, std::uint64_t address) const = 0;
};

}  // namespace ptkit::code::source
