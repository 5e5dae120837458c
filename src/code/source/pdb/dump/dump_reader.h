// Reads the text that `llvm-pdbutil dump --publics --symbols --section-headers` writes. Internal to
// src/code/source/pdb.
//
//                         Symbols
//   ============================================================
//     Mod 0000 | `/src/t.o`:
//          72 | S_GPROC32 [size = 48] `start`
//              parent = 0, end = 292, addr = 0001:0000, code size = 43
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "code/source/pdb/dump/dump_text.h"
#include "code/source/pdb/dump/sections.h"

namespace ptkit::code::pdb {

struct DumpedSymbol {
  std::string name;
  std::uint64_t section = 0;  // number, from 1 on
  std::uint64_t offset = 0;   // in the section
  std::uint64_t size = 0;     // 0: not known
};

class DumpReader {
 public:
  // `most_bytes`: of all symbols in memory.
  explicit DumpReader(std::size_t most_bytes) : left_(most_bytes) {}

  // Returns false if there is no need of more: problem() says why.
  [[nodiscard]] bool take(std::string_view part);
  // After the last part: what is wrong with the text; empty: nothing.
  [[nodiscard]] std::string problem() const;

  // Valid if there is no problem.
  std::vector<DumpedSymbol> procedures;
  std::vector<DumpedSymbol> publics;  // of code
  Sections sections;

 private:
  friend class DumpText;
  enum class Part : std::uint8_t { OTHER, PUBLICS, SYMBOLS, SECTIONS };

  void read_line(std::string_view line);
  void begin_part(std::string_view title);
  void read_symbol(std::string_view line);
  void add(std::vector<DumpedSymbol>& to, DumpedSymbol symbol);

  DumpText text_;
  Part part_ = Part::OTHER;
  std::string name_;  // of the function that the next lines describe
  std::size_t left_ = 0;
  bool has_symbols_ = false;
  bool is_too_much_ = false;
};

}  // namespace ptkit::code::pdb
