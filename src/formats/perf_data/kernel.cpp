#include "formats/perf_data/kernel.h"

#include <algorithm>
#include <string_view>

#include "base/interval_map.h"
#include "code/image/elf/elf.h"
#include "code/image/kallsyms.h"
#include "formats/common/files.h"
#include "formats/perf_event/sideband.h"
#include "trace/warning_codes.h"

namespace ptkit::formats::perf {
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

constexpr std::uint16_t kUnregister = 1;  // PERF_RECORD_KSYMBOL_FLAGS_*

// Offsets of members of struct bpf_prog_info (uapi/linux/bpf.h).
constexpr std::size_t kJitedBytesAt = 16;
constexpr std::size_t kJitedCodeAt = 24;
constexpr std::size_t kFunctionCountAt = 104;
constexpr std::size_t kLengthCountAt = 108;
constexpr std::size_t kFunctionsAt = 112;
constexpr std::size_t kLengthsAt = 120;
constexpr std::size_t kInfoBytes = 128;

// A program's functions are consecutive in its JIT code. Two arrays give their addresses (jited_ksyms) and
// sizes (jited_func_lens).
void take_program(base::Bytes info, base::Bytes data, std::map<std::uint64_t, trace::TraceBuffer>& out) {
  const auto field = [&](std::size_t at) { return Fields(info, at); };
  const auto part = [&](std::size_t at, std::uint64_t size) -> base::Bytes {
    const std::uint64_t begin = field(at).u64();
    if (begin > data.size() || size > data.size() - begin) return {};
    return data.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
  };
  const std::uint32_t count = std::min(field(kFunctionCountAt).u32(), field(kLengthCountAt).u32());
  Fields code(part(kJitedCodeAt, field(kJitedBytesAt).u32()));
  Fields addresses(part(kFunctionsAt, std::uint64_t{count} * 8));
  Fields lengths(part(kLengthsAt, std::uint64_t{count} * 4));
  while (addresses.left() != 0 && lengths.left() != 0) {
    const std::uint64_t address = addresses.u64();
    const base::Bytes bytes = code.take_bytes(lengths.u32());
    if (!code.ok()) return;
    out.insert_or_assign(address, trace::TraceBuffer::from_vector({bytes.begin(), bytes.end()}));
  }
}

}  // namespace

using trace::WarningCode;

std::map<std::uint64_t, trace::TraceBuffer> bpf_programs(base::Bytes feature) {
  std::map<std::uint64_t, trace::TraceBuffer> out;
  Fields fields(feature);
  for (std::uint32_t count = fields.u32(); count > 0 && fields.ok(); --count) {
    const std::uint32_t info_bytes = fields.u32();
    const std::uint32_t data_bytes = fields.u32();
    fields.skip(8);  // bit mask of the arrays
    const base::Bytes info = fields.take_bytes(info_bytes);
    const base::Bytes data = fields.take_bytes(data_bytes);
    if (fields.ok() && info.size() >= kInfoBytes) take_program(info, data, out);
  }
  return out;
}

bool KernelChanges::add(const Record& record, const trace::TraceBuffer& bytes, const Trailer& trailer) {
  Fields fields(bytes.bytes());
  Event event;
  event.tsc = trailer.time_known ? trailer.time : 0;
  event.address = fields.u64();
  event.is_symbol = record.type == KSYMBOL;
  if (event.is_symbol) {
    event.size = fields.u32();
    fields.skip(2);  // ksym_type: BPF or OOL (out of line), which are handled alike
    event.unregistered = (fields.u16() & kUnregister) != 0;
    event.name = fields.text();
  } else {
    const std::size_t old_size = fields.u16();
    const std::size_t new_size = fields.u16();
    constexpr std::size_t kBytesAt = 12;
    fields.skip(old_size + new_size);
    event.before = bytes.slice(kBytesAt, old_size);
    event.after = bytes.slice(kBytesAt + old_size, new_size);
  }
  if (fields.ok()) events_.push_back(std::move(event));
  return fields.ok();
}

void KernelChanges::end(trace::TraceBundle& bundle, std::uint64_t address, std::uint64_t tsc) {
  const auto found = functions_.find(address);
  if (found == functions_.end()) return;
  for (const std::size_t number : found->second.regions) bundle.code[number].tsc_to = tsc;
  functions_.erase(found);
}

void KernelChanges::add_symbol(trace::TraceBundle& bundle, const Event& event) {
  end(bundle, event.address, event.tsc);
  if (event.unregistered) return;
  KernelFunction& function = functions_[event.address];
  function.size = event.size;
  const auto program = programs_.find(event.address);
  if (program == programs_.end()) return;
  trace::CodeRegion region;
  region.address = event.address;
  region.bytes = program->second;
  region.size = program->second.size();
  region.tsc_from = event.tsc;
  region.file = static_cast<std::int32_t>(bundle.files.size());
  bundle.files.push_back({"[bpf]", {}, {}, {{event.name, 0, region.size}}});
  function.regions.push_back(bundle.code.size());
  bundle.code.push_back(std::move(region));
}

trace::CodeRegion KernelChanges::region_at(std::uint64_t address) const {
  trace::CodeRegion region;
  region.address = address;
  const auto after = kernel_.upper_bound(address);
  if (after == kernel_.begin()) return region;
  const trace::CodeRegion& around = std::prev(after)->second;
  if (address - around.address >= around.size) return region;
  region.file = around.file;
  region.file_offset = around.file_offset + (address - around.address);
  return region;
}

// Until its first change, code has the old bytes of the TEXT_POKE record. kcore may have been copied later.
void KernelChanges::add_poke(trace::TraceBundle& bundle, const Event& event) {
  trace::CodeRegion region = region_at(event.address);
  const auto function = functions_.upper_bound(event.address);
  const bool inside = function != functions_.begin() &&
                      event.address - std::prev(function)->first < std::prev(function)->second.size;
  const bool is_first = patched_.insert(event.address).second;
  if (is_first && !inside && event.before.size() != 0 && event.tsc != trace::kTscMin) {
    region.bytes = event.before;
    region.size = event.before.size();
    region.tsc_to = event.tsc;
    bundle.code.push_back(region);
  }
  if (event.after.size() == 0) return;
  region.bytes = event.after;
  region.size = event.after.size();
  region.tsc_from = event.tsc;
  region.tsc_to = trace::kTscMax;
  if (inside) std::prev(function)->second.regions.push_back(bundle.code.size());
  bundle.code.push_back(std::move(region));
}

void KernelChanges::add_to(trace::TraceBundle& bundle, base::Bytes programs) {
  kernel_ = kernel_regions(bundle);
  programs_ = bpf_programs(programs);
  for (Event& event : events_) event.tsc = tsc_of(bundle.configuration.clock, event.tsc);
  std::ranges::stable_sort(events_, {}, &Event::tsc);
  for (const Event& event : events_) {
    if (event.is_symbol) {
      add_symbol(bundle, event);
    } else {
      add_poke(bundle, event);
    }
  }
}

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
