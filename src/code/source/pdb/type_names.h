// Names of inlined functions, by records of the PDB's types. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "code/source/budget.h"
#include "code/source/pdb/cursor.h"
#include "code/source/strings.h"

namespace ptkit::code::pdb {

// A stream of records with numbers: types (TPI), or functions and strings (IPI).
class TypeRecords {
 public:
  TypeRecords(const MsfFile& file, std::uint32_t stream);

  // The problem of the stream; empty: none.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  // The fields of a record after its kind; kind 0: there is none. Valid as long as the object.
  struct Record {
    std::uint16_t kind = 0;
    Cursor fields;
  };
  [[nodiscard]] Record find(std::uint32_t number);
  // The name that follows in a record. If it has no end, that is the problem of the stream, and no more
  // records are found: the end of a name is sought in 64 KiB.
  [[nodiscard]] std::string name(Record& record);

 private:
  static constexpr std::uint32_t kStep = 64;

  Stream stream_;
  std::uint32_t first_ = 0;           // number of the first record
  std::uint32_t end_ = 0;             // of the last one, in bytes
  std::vector<std::uint32_t> marks_;  // where each kStep-th record begins, as far as records were sought
  std::string problem_;
};

class TypeNames {
 public:
  // `texts` gets the names. All must outlive the object.
  TypeNames(const MsfFile& file, code::source::Strings& texts, code::source::Budget& memory);

  [[nodiscard]] std::string problem() const {
    return ids_.problem().empty() ? types_.problem() : ids_.problem();
  }
  // The number of the name of a function, with its namespaces and class; kNone: not known.
  [[nodiscard]] std::uint32_t of_function(std::uint32_t function);

 private:
  [[nodiscard]] std::string whole_name(std::uint32_t function);
  [[nodiscard]] std::string class_name(std::uint32_t type);
  [[nodiscard]] std::string scope_name(std::uint32_t scope);

  code::source::Strings& texts_;
  code::source::Budget& memory_;
  TypeRecords types_;
  TypeRecords ids_;
  std::unordered_map<std::uint32_t, std::uint32_t> names_;  // by function
};

}  // namespace ptkit::code::pdb
