#include "formats/perf_data/kernel.h"

#include <algorithm>
#include <string_view>

#include "base/interval_map.h"
#include "code/image/elf/elf.h"
#include "code/image/kallsyms.h"
#include "formats/common/files.h"
#include "trace/warning_codes.h"

namespace ptkit::formats::perf {

using trace::WarningCode;

namespace {

constexpr const char* kKernel = "[kernel]";

// kallsyms has no sizes. A symbol extends to the next one.
void set_sizes(std::vector<trace::SymbolEntry>& symbols) {
  std::ranges::stable_sort(symbols, {}, &trace::SymbolEntry::file_offset);
  for (std::size_t i = symbols.size(); i-- > 1;) {
    const std::uint64_t next = symbols[i].file_offset;
    trace::SymbolEntry& before = symbols[i - 1];
    before.size = before.file_offset == next ? symbols[i].size : next - before.file_offset;
  }
}

void add_names(trace::TraceBundle& bundle, std::size_t file, std::string_view text) {
  // The first region of an address has its names.
  base::IntervalMap<const trace::CodeRegion*> regions;
  for (std::size_t i = bundle.code.size(); i-- > 0;) {
    const trace::CodeRegion& region = bundle.code[i];
    if (region.file == static_cast<std::int32_t>(file))
      regions.assign_size(region.address, region.size, &region);
  }
  auto& symbols = bundle.files[file].symbols;
  code::image::KernelSymbols names(text);
  for (code::image::KernelSymbol name; names.next(name);) {
    const auto found = regions.find(name.address);
    if (!name.is_code() || found == regions.end()) continue;
    const trace::CodeRegion& region = *found->second.value;
    symbols.push_back({std::string(name.name), region.file_offset + (name.address - region.address), 0});
  }
  set_sizes(symbols);
}

}  // namespace

std::map<std::uint64_t, trace::CodeRegion> kernel_regions(const trace::TraceBundle& bundle) {
  std::map<std::uint64_t, trace::CodeRegion> out;
  for (const trace::CodeRegion& one : bundle.code) {
    if (one.file >= 0 && bundle.files[static_cast<std::size_t>(one.file)].path == kKernel)
      out.insert_or_assign(one.address, one);
  }
  return out;
}

bool add_kernel(trace::TraceBundle& bundle, const std::string& folder) {
  const std::string path = join(folder, "kcore");
  if (!is_file(path)) return false;
  const auto added = code::image::add_elf(bundle, path, {});
  if (!added.ok()) {
    bundle.warnings.push_back(warn(WarningCode::KERNEL_CODE_MISSING, added.failure().detail));
    return true;
  }
  const auto file = static_cast<std::size_t>(added.value());
  bundle.files[file].path = kKernel;
  bundle.files[file].build_id.clear();  // kcore is memory, not a file with a build-id
  bundle.files[file].contents = {};     // kcore has no symbols; kallsyms has them
  const auto names = trace::TraceBuffer::map_file(join(folder, "kallsyms"));
  if (names.ok()) {
    const base::Bytes text = names.value().bytes();
    add_names(bundle, file, {reinterpret_cast<const char*>(text.data()), text.size()});
  }
  return true;
}

}  // namespace ptkit::formats::perf
