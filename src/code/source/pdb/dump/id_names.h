// Names of inlined functions: records of the IPI stream, as `llvm-pdbutil dump --ids` writes them. Internal
// to src/code/source/pdb.
//
//   0x1002 | LF_MFUNC_ID [size = 16]
//            name = add, type = 0x1003, class type = 0x1000
//   0x1005 | LF_STRING_ID [size = 12] ID: <no type>, String: ns
//   0x1006 | LF_FUNC_ID [size = 20]
//            name = free_fn, type = 0x100E, parent scope = 0x1005
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "code/source/budget.h"
#include "code/source/no_number.h"
#include "code/source/pdb/dump/dump_text.h"
#include "code/source/strings.h"

namespace ptkit::code::pdb {

class IdNames {
 public:
  IdNames(code::source::Strings& texts, code::source::Budget& memory) : texts_(texts), memory_(memory) {}

  void read_line(std::string_view line);

  // The class of a function, in the TPI stream; 0: it has none.
  [[nodiscard]] std::uint32_t class_of(std::uint32_t function) const;
  // The number of the name of a function, with its namespaces and class; kNone: not known. `classes`: numbers
  // of names.
  [[nodiscard]] std::uint32_t name_of(std::uint32_t function,
                                      const std::unordered_map<std::uint32_t, std::uint32_t>& classes) const;

 private:
  struct Id {
    std::uint32_t name = code::source::kNone;  // of a function, or a string
    std::uint32_t scope = 0;                   // a string; of a method, its class
    bool is_method = false;
  };
  void read_function(std::string_view text);

  code::source::Strings& texts_;
  code::source::Budget& memory_;
  std::unordered_map<std::uint32_t, Id> ids_;
  Id* open_ = nullptr;  // the next line describes it
};

// Names of classes, by type, as `llvm-pdbutil dump --types` writes them.
//
//   0x1000 | LF_STRUCTURE [size = 52] `ns::Box<int>`
class ClassReader {
 public:
  ClassReader(code::source::Strings& texts, code::source::Budget& memory) : texts_(texts), memory_(memory) {}
  [[nodiscard]] bool take(std::string_view text);

  std::unordered_map<std::uint32_t, std::uint32_t> names;  // numbers of names by type

 private:
  friend class DumpText;
  void begin_part(std::string_view title) { is_types_ = title == "Types (TPI Stream)"; }
  void read_line(std::string_view line);

  code::source::Strings& texts_;
  code::source::Budget& memory_;
  DumpText text_;
  bool is_types_ = false;
};

}  // namespace ptkit::code::pdb
