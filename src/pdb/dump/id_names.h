// Names of inlined functions: records of the IPI stream, as `llvm-pdbutil dump --ids` writes them. Internal
// to src/pdb.
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

#include "pdb/dump/dump_text.h"
#include "source/budget.h"
#include "source/no_number.h"
#include "source/strings.h"

namespace ptkit::pdb {

class IdNames {
 public:
  IdNames(source::Strings& texts, source::Budget& memory) : texts_(texts), memory_(memory) {}

  void read_line(std::string_view line);

  // The class of a function, in the TPI stream; 0: it has none.
  [[nodiscard]] std::uint32_t class_of(std::uint32_t function) const;
  // The number of the name of a function, with its namespaces and class; kNone: not known. `classes`: numbers
  // of names.
  [[nodiscard]] std::uint32_t name_of(std::uint32_t function,
                                      const std::unordered_map<std::uint32_t, std::uint32_t>& classes) const;

 private:
  struct Id {
    std::uint32_t name = source::kNone;  // of a function, or a string
    std::uint32_t scope = 0;             // a string; of a method, its class
    bool is_method = false;
  };
  void read_function(std::string_view text);

  source::Strings& texts_;
  source::Budget& memory_;
  std::unordered_map<std::uint32_t, Id> ids_;
  Id* open_ = nullptr;  // the next line describes it
};

// Names of classes, by type, as `llvm-pdbutil dump --types` writes them.
//
//   0x1000 | LF_STRUCTURE [size = 52] `ns::Box<int>`
class ClassReader {
 public:
  ClassReader(source::Strings& texts, source::Budget& memory) : texts_(texts), memory_(memory) {}
  [[nodiscard]] bool take(std::string_view text);

  std::unordered_map<std::uint32_t, std::uint32_t> names;  // numbers of names by type

 private:
  friend class DumpText;
  void begin_part(std::string_view title) { is_types_ = title == "Types (TPI Stream)"; }
  void read_line(std::string_view line);

  source::Strings& texts_;
  source::Budget& memory_;
  DumpText text_;
  bool is_types_ = false;
};

}  // namespace ptkit::pdb
