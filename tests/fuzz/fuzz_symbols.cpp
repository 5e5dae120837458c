// Lists of symbols of any kind: reading, placing and looking names up.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "code/source/pdb/pdb_file.h"
#include "code/symbol/symbols.h"
#include "formats/symbols/place.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptkit;
  if (code::pdb::is_pdb({data, size})) return 0;  // another program reads it, in a process of its own
  auto list = formats::read_symbol_list("perf-7.map", {data, size});
  if (!list.ok()) {
    if (list.failure().detail.empty()) std::abort();
    return 0;
  }
  for (const auto& one : list.value().symbols) {
    if (one.name.empty() || one.name.size() > size) std::abort();
  }
  auto bundle = std::make_shared<trace::TraceBundle>();
  trace::CodeRegion& region = bundle->code.emplace_back();
  region.address = 0x40'0000;
  region.size = 0x10'0000;
  formats::add_modules(*bundle, list.value());
  const auto base = size % 2 == 0 ? std::optional<std::uint64_t>{} : 0x7000'0000'0000;
  static_cast<void>(formats::add_symbols(*bundle, "list", list.value(), base));
  const code::symbol::Symbols symbols(bundle);
  for (const trace::NameRange& range : bundle->names) {
    const std::uint64_t last = range.address + (range.size - 1);
    if (last < range.address) std::abort();
    static_cast<void>(symbols.find(0, 0, range.address));
    static_cast<void>(symbols.find(0, 0, last));
    static_cast<void>(symbols.module_at(0, 0, last));
  }
  static_cast<void>(symbols.similar("main", 3));
  return 0;
}
