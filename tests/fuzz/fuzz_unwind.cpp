// Tables for unwinding: of ELF files, and as bundles store them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "code/bounds/table.h"

namespace {

using ptkit::code::bounds::UnwindTable;

void check(const UnwindTable& table, std::uint64_t file_bytes) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto function = table.function(i);
    if (function.begin < end || function.end <= function.begin) std::abort();
    end = function.end;
    if (table.function_at(function.begin) != function || table.function_at(end - 1) != function) std::abort();
    if (const auto pad = table.landing_pad_of(function.begin); pad && !table.is_landing_pad(*pad))
      std::abort();
    static_cast<void>(table.is_entry(function.begin));
    static_cast<void>(table.rva_of(function.begin));
  }
  if (end > file_bytes) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const UnwindTable table({data, size});
  check(table, size);
  // A function takes more bytes in a file than in the table.
  if (table.memory_bytes() > 4 * size + 4096) std::abort();
  const auto stored = table.encode();
  const auto read = UnwindTable::decode(stored, size);
  if (read.has_value() != !stored.empty() || (read && read->encode() != stored)) std::abort();
  const auto given = UnwindTable::decode({data, size}, UINT32_MAX);
  if (given) check(*given, UINT32_MAX);
  return 0;
}
