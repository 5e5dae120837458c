#include "code/source/pdb/symbol_records.h"

namespace ptkit::code::pdb {

SymbolRecords::SymbolRecords(const Stream& stream, const Module& module)
    : SymbolRecords(stream, 0, module.symbol_bytes) {
  constexpr std::uint32_t kSignature = 4;
  if (cursor_.left() != 0 && cursor_.u32() != kSignature)
    problem_ = damage_at(stream.number(), 0, "its symbols have an older form, or none");
}

bool SymbolRecords::next(SymbolRecord& record) {
  if (!problem_.empty() || cursor_.left() == 0) return false;
  record.offset = cursor_.offset();
  const std::uint16_t size = cursor_.u16();
  record.kind = SymbolKind{cursor_.u16()};
  constexpr std::uint16_t kKindBytes = 2;
  record.fields = size > kKindBytes ? cursor_.take(size - kKindBytes) : base::Bytes();
  if (cursor_.good() && size >= kKindBytes) return true;
  problem_ = damage(record, "a symbol is cut");
  return false;
}

bool is_procedure(SymbolKind kind) noexcept {
  switch (kind) {
    case SymbolKind::LOCAL_PROCEDURE:
    case SymbolKind::GLOBAL_PROCEDURE:
    case SymbolKind::LOCAL_PROCEDURE_ID:
    case SymbolKind::GLOBAL_PROCEDURE_ID:
    case SymbolKind::LOCAL_PROCEDURE_DPC:
    case SymbolKind::LOCAL_PROCEDURE_DPC_ID:
      return true;
    default:
      return false;
  }
}

// procedure: parent, end, next; size; begin and end of its body, type; offset, section; flags; name
// thunk:     parent, end, next;                                        offset, section; size, kind; name
bool read_function(const SymbolRecord& record, Function& function) {
  Cursor fields(record.fields);
  const bool is_thunk = record.kind == SymbolKind::THUNK;
  fields.skip(sizeof(std::uint32_t));
  function.end = fields.u32();
  fields.skip(sizeof(std::uint32_t));
  if (!is_thunk) {
    function.size = fields.u32();
    fields.skip(3 * sizeof(std::uint32_t));
  }
  function.offset = fields.u32();
  function.section = fields.u16();
  if (is_thunk) function.size = fields.u16();
  fields.skip(1);
  function.name = fields.text();
  return fields.good();
}

}  // namespace ptkit::code::pdb
