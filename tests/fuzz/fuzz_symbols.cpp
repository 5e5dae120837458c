// Symbols at any addresses: moving them to those of the trace, and looking names up; maps of JIT code.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "code/symbol/symbols.h"
#include "formats/perf_event/jit.h"
#include "formats/symbols/symbol_list.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptkit;
  // A symbol for each 16 bytes: address and size; names are the bytes themselves.
  formats::SymbolList list{.kind = "list"};
  for (std::size_t at = 0; size - at >= 16; at += 16) {
    const std::string name(reinterpret_cast<const char*>(data + at), 1 + data[at] % 16);
    list.symbols.push_back({name, base::load_le<8>(data + at), base::load_le<8>(data + at + 8)});
  }
  if (list.symbols.empty()) return 0;
  list.at_run_time = data[0] % 4 == 1;
  if (data[0] % 4 == 2) list.linked_base = base::load_le<8>(data + 8);
  list.segments = {{".text", list.symbols[0].file_offset, list.symbols[0].size}};
  for (const auto& one : formats::perf::read_jit_map({reinterpret_cast<const char*>(data), size})) {
    if (one.name.empty() || one.name.size() > size) std::abort();
  }
  auto bundle = std::make_shared<trace::TraceBundle>();
  trace::CodeRegion& region = bundle->code.emplace_back();
  region.address = 0x40'0000;
  region.size = 0x10'0000;
  const auto base = size % 2 == 0 ? std::optional<std::uint64_t>{} : 0x7000'0000'0000;
  static_cast<void>(formats::add_symbols(*bundle, "list", list, base));
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
