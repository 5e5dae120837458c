// Reads the text that `llvm-pdbutil dump --symbols --il --ids --section-headers` writes about inlined calls.
// Internal to src/code/source/pdb.
//
//                         Inlinee Lines
//   ============================================================
//   Mod 0000 | `/src/a.o`:
//    Inlinee |  Line | Source File
//     0x1000 |     3 | /src/a.c (MD5: 1A41863D876792A0133722A6B38963BD)
//
//                           Symbols
//   ============================================================
//     Mod 0000 | `/src/a.o`:
//         72 | S_GPROC32 [size = 48] `start`
//              parent = 0, end = 856, addr = 0001:0000, code size = 530
//        256 | S_INLINESITE [size = 52]
//              inlinee = 0x1000 (mid), parent = 72, end = 552
//                0608      line 4 (+4)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "code/source/budget.h"
#include "code/source/no_number.h"
#include "code/source/pdb/dump/annotations.h"
#include "code/source/pdb/dump/dump_text.h"
#include "code/source/pdb/dump/id_names.h"
#include "code/source/pdb/dump/sections.h"
#include "code/source/strings.h"

namespace ptkit::code::pdb {

// A procedure with inlined calls.
struct ReadFunction {
  std::uint32_t module = 0;
  std::uint32_t section = 0;
  std::uint32_t offset = 0;  // in the section
  std::uint32_t size = 0;
  std::uint32_t first_site = 0;  // its calls are those up to the next function's
};
struct ReadSite {
  std::uint32_t caller = code::source::kNone;  // number of a site; kNone: the function
  std::uint32_t level = 1;                     // sites that it is in, itself included
  std::uint32_t inlinee = 0;                   // its function, in the IPI stream
  std::uint32_t first_row = 0;                 // its rows are those up to the next site's
};
// Where an inlined function is declared.
struct Inlinee {
  std::uint32_t path = code::source::kNone;
  std::uint32_t line = 0;
};

class InlineReader {
 public:
  InlineReader(code::source::Strings& texts, code::source::Budget& memory)
      : ids(texts, memory), texts_(texts), memory_(memory) {}

  // Returns false if there is no need of more: problem() says why.
  [[nodiscard]] bool take(std::string_view text);
  // After the last text: what is wrong with it; empty: nothing.
  [[nodiscard]] std::string problem() const;

  [[nodiscard]] Inlinee inlinee(std::uint32_t module, std::uint32_t number) const;

  // Valid if there is no problem.
  Sections sections;
  IdNames ids;
  std::vector<ReadFunction> functions;
  std::vector<ReadSite> sites;
  std::vector<SiteRow> rows;
  bool has_files = false;  // some rows are of other files than their function's
  bool is_deep = false;    // some calls are deeper than code::source::kMostLevels: they were left out

 private:
  friend class DumpText;
  enum class Part : std::uint8_t { OTHER, SECTIONS, IDS, INLINEES, SYMBOLS };
  enum class Open : std::uint8_t { OTHER, PROCEDURE, SITE, ANNOTATIONS, LEFT_OUT };
  // A function or a call that reaches to a record of the module.
  struct Scope {
    std::uint32_t end = 0;
    std::uint32_t site = code::source::kNone;  // kNone: the function
  };

  void begin_part(std::string_view title);
  void read_line(std::string_view line);
  void read_inlinee(std::string_view text);
  void read_symbol(std::string_view line);
  void begin_record(std::uint32_t offset, std::string_view kind);
  [[nodiscard]] bool read_procedure(std::string_view text);
  [[nodiscard]] bool read_site(std::string_view text);
  [[nodiscard]] bool read_annotation(std::string_view text);
  void finish_site();

  code::source::Strings& texts_;
  code::source::Budget& memory_;
  DumpText text_;
  Part part_ = Part::OTHER;
  std::uint32_t module_ = 0;
  std::uint32_t record_ = 0;  // offset of the open one
  Open open_ = Open::OTHER;
  std::vector<Scope> scopes_;
  std::optional<ReadFunction> function_;                 // without calls up to now
  std::optional<SiteRows> site_rows_;                    // of the open call
  std::unordered_map<std::uint64_t, Inlinee> inlinees_;  // by module and number
  bool is_unknown_ = false;
  bool has_symbols_ = false;
};

}  // namespace ptkit::code::pdb
