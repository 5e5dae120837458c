// Records of symbols in a stream: a length, a kind, and fields. Internal to src/code/source/pdb.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "code/source/pdb/cursor.h"
#include "code/source/pdb/debug_streams.h"

namespace ptkit::code::pdb {

enum class SymbolKind : std::uint16_t {
  THUNK = 0x1102,
  PUBLIC = 0x110e,
  LOCAL_PROCEDURE = 0x110f,
  GLOBAL_PROCEDURE = 0x1110,
  LOCAL_PROCEDURE_ID = 0x1146,
  GLOBAL_PROCEDURE_ID = 0x1147,
  INLINE_SITE = 0x114d,
  LOCAL_PROCEDURE_DPC = 0x1155,
  LOCAL_PROCEDURE_DPC_ID = 0x1156,
  INLINE_SITE_2 = 0x115d,
};

// Valid until the next record.
struct SymbolRecord {
  std::uint32_t offset = 0;  // in the stream
  SymbolKind kind{};
  base::Bytes fields;
};

class SymbolRecords {
 public:
  // Those of a module. The stream must outlive the object.
  SymbolRecords(const Stream& stream, const Module& module);
  // Those from `begin` to `end`.
  SymbolRecords(const Stream& stream, std::uint32_t begin, std::uint32_t end)
      : stream_(stream), cursor_(stream, begin, end) {}

  // false: there are no more, or there is a problem.
  [[nodiscard]] bool next(SymbolRecord& record);
  // The problem of the records; empty: none.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  // A problem of a record.
  [[nodiscard]] std::string damage(const SymbolRecord& record, std::string_view reason) const {
    return damage_at(stream_.number(), record.offset, reason);
  }

 private:
  const Stream& stream_;
  Cursor cursor_;
  std::string problem_;
};

struct Function {
  std::string_view name;
  std::uint32_t end = 0;  // offset in the stream of the record that ends the function
  std::uint32_t size = 0;
  std::uint32_t section = 0;  // number, from 1 on
  std::uint32_t offset = 0;   // in the section
};

// Whether records of this kind are functions with a size.
[[nodiscard]] bool is_procedure(SymbolKind kind) noexcept;
// Of a record of a procedure or a thunk. False: it is cut.
[[nodiscard]] bool read_function(const SymbolRecord& record, Function& function);

}  // namespace ptkit::code::pdb
