// Bounds of a file's functions (.eh_frame of ELF files, .pdata of x64 PE files), call sites and their landing
// pads (.gcc_except_table), and PLT stubs. So functions of stripped files have bounds, and an exception has a
// frame in which it goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "trace/bundle.h"

namespace ptkit::code::image {
class PeFile;
}

namespace ptkit::code::bounds {

// A function: bytes [begin, end) of a file.
struct FunctionSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] bool operator==(const FunctionSpan&) const = default;
};

// All offsets are in the file, as those of symbols (trace::SymbolEntry). Code beyond 4 GiB is left out.
// Thread-safe: does not change after construction.
class UnwindTable {
 public:
  UnwindTable() = default;
  // Empty if the file is no program or library for x86 (ELF, PE). Damage leaves out what it concerns.
  explicit UnwindTable(base::Bytes file);
  // Without call sites: landing pads of PE files are not read.
  explicit UnwindTable(const code::image::PeFile& file);
  // The table of a file of a bundle: by its contents, or else as the recorder stored it.
  [[nodiscard]] static UnwindTable of(const trace::ImageFile& file);

  // The function that contains a byte. Functions do not overlap. A PLT stub is a function.
  [[nodiscard]] std::optional<FunctionSpan> function_at(std::uint64_t offset) const noexcept;
  // Whether a function begins there: also by a jump, which then is a tail call. Parts that compilers move
  // out of a function (".cold"; chained entries of .pdata) have bounds of their own, but are no entries, as
  // far as they begin with a stack that is in use.
  [[nodiscard]] bool is_entry(std::uint64_t offset) const noexcept;
  // Where an exception goes on that comes out of a call. `call` is a byte of the call instruction: mostly
  // its first one, or the last one before its return address.
  [[nodiscard]] std::optional<std::uint64_t> landing_pad_of(std::uint64_t call) const noexcept;
  [[nodiscard]] bool is_landing_pad(std::uint64_t offset) const noexcept;
  [[nodiscard]] bool is_stub(std::uint64_t offset) const noexcept;  // in a PLT

  // The functions, sorted. Indices are valid as long as the table.
  [[nodiscard]] std::size_t size() const noexcept { return functions_.size(); }
  [[nodiscard]] FunctionSpan function(std::size_t index) const noexcept {
    return {functions_[index].begin, functions_[index].end};
  }
  [[nodiscard]] std::size_t call_sites() const noexcept { return call_sites_.size(); }
  // The address of a byte of code less the file's load address.
  [[nodiscard]] std::optional<std::uint64_t> rva_of(std::uint64_t offset) const noexcept;
  [[nodiscard]] std::size_t memory_bytes() const noexcept;

  // The form in bundles (docs/bundle-format.md). Empty if the table has no function.
  [[nodiscard]] std::vector<std::uint8_t> encode() const;
  // nullopt: damaged. `file_bytes`: all offsets are in a file of that size.
  [[nodiscard]] static std::optional<UnwindTable> decode(base::Bytes bytes, std::uint64_t file_bytes);

 private:
  using FileOffset = std::uint32_t;
  struct Function {
    FileOffset begin = 0;
    FileOffset end = 0;
  };
  struct CallSite {
    FileOffset begin = 0;
    FileOffset end = 0;
    FileOffset pad = 0;
  };
  struct Segment {  // of code
    FileOffset begin = 0;
    FileOffset end = 0;
    std::uint64_t rva = 0;
  };

  void collect_pads();

  // Each sorted and without overlaps.
  std::vector<Function> functions_;
  std::vector<bool> is_part_;  // by function
  std::vector<CallSite> call_sites_;
  std::vector<FileOffset> pads_;
  std::vector<Function> stubs_;  // sections of PLT stubs
  std::vector<Segment> segments_;

  friend class TableBuilder;
  friend class TableDecoder;
};

}  // namespace ptkit::code::bounds
