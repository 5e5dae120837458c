// Inlined calls in a PDB. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "code/source/budget.h"
#include "code/source/pdb/annotations.h"
#include "code/source/pdb/module_files.h"
#include "code/source/pdb/symbol_records.h"
#include "code/source/pdb/tables.h"
#include "code/source/pdb/type_names.h"

namespace ptkit::code::pdb {

class InlineReader {
 public:
  // Adds to `tables`. All must outlive the object.
  InlineReader(Tables& tables, const Sections& sections, TypeNames& names, code::source::Budget& memory)
      : tables_(tables), sections_(sections), names_(names), memory_(memory) {}

  // Adds the calls of a module. Returns their problem; empty: none.
  [[nodiscard]] std::string add(const Stream& stream, const Module& module, const ModuleFiles& files);

 private:
  // A function or a call that reaches to a record of the module.
  struct Scope {
    std::uint32_t end = 0;
    std::uint32_t site = code::source::kNone;  // kNone: the function
  };
  // Where an inlined function is declared.
  struct Inlinee {
    std::uint32_t path = code::source::kNone;
    std::uint32_t line = 0;
  };

  [[nodiscard]] bool add_inlinees(Cursor part, const ModuleFiles& files);
  [[nodiscard]] bool add_site(const SymbolRecord& record, const ModuleFiles& files);
  [[nodiscard]] bool begins_function();
  void add_rows(Site& site, const Inlinee& inlinee, const ModuleFiles& files);

  Tables& tables_;
  const Sections& sections_;
  TypeNames& names_;
  code::source::Budget& memory_;
  // Of the module.
  std::unordered_map<std::uint32_t, Inlinee> inlinees_;
  std::vector<Scope> scopes_;  // the outermost one first
  Function function_;          // of scopes_
  std::uint32_t address_ = 0;  // of the function
  bool has_sites_ = false;     // of the function, in the tables
  // Addresses of functions with calls. Of equal functions that the linker folded, the first one counts.
  std::unordered_set<std::uint32_t> known_;
  std::vector<SiteRow> rows_;  // of the last call
};

// Makes all_lines of the other tables.
void unite_lines(Tables& tables);

}  // namespace ptkit::code::pdb
