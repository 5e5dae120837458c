// A folder of kAFL, Nyx or libxdc: `trace` (a raw stream; kAFL and Nyx: `pt_trace_dump_N`, one per run) and a
// page cache. `page_cache.addr` holds one 64-bit address for each 4096-byte page of `page_cache.dump`.
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/addresses.h"
#include "base/paths.h"
#include "formats/common/files.h"
#include "formats/common/numbered_files.h"
#include "formats/common/readers.h"
#include "formats/common/stop_byte.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

namespace {

using base::kPageBytes;
constexpr std::size_t kAddressBytes = 8;
constexpr std::string_view kDumpName = "pt_trace_dump_";

bool sniff_libxdc(const std::string& path) {
  const bool has_trace = is_file(join(path, "trace")) || !numbered_files(path, kDumpName).empty();
  return is_folder(path) && has_trace &&
         (is_file(join(path, "page_cache.addr")) || is_file(join(path, "page_cache.dump")));
}

base::Result<trace::TraceBuffer> member(const std::string& folder, const char* name) {
  const std::string path = join(folder, name);
  if (!is_file(path)) {
    return bad_file(folder,
                    std::string("member ") + name +
                        " is missing; expected trace, page_cache.addr and page_cache.dump (open the trace "
                        "file alone to see its packets without code)");
  }
  return trace::TraceBuffer::map_file(path);
}

// Returns slots of usable pages in file order. An address with low bits set marks an unmapped page, which
// still takes a slot of the dump. The first of several entries for one page is used.
std::vector<std::size_t> usable_slots(base::Bytes addresses, std::size_t pages) {
  std::unordered_set<std::uint64_t> seen;
  std::vector<std::size_t> slots;
  for (std::size_t slot = 0; slot < pages; ++slot) {
    const auto address = base::load_le<kAddressBytes>(addresses.data() + slot * kAddressBytes);
    if (address % kPageBytes == 0 && seen.insert(address).second) slots.push_back(slot);
  }
  return slots;
}

void add_pages(trace::TraceBundle& bundle, const trace::TraceBuffer& addresses,
               const trace::TraceBuffer& dump, std::size_t pages) {
  const auto slots = usable_slots(addresses.bytes(), pages);
  for (std::size_t first = 0; first < slots.size();) {
    const auto address = [&](std::size_t index) {
      return base::load_le<kAddressBytes>(addresses.bytes().data() + slots[index] * kAddressBytes);
    };
    std::size_t end = first + 1;  // pages that are adjacent in memory and in the dump become one region
    while (end < slots.size() && slots[end] == slots[end - 1] + 1 &&
           address(end) == address(end - 1) + kPageBytes)
      ++end;
    trace::CodeRegion region;
    region.address = address(first);
    region.size = (end - first) * kPageBytes;
    region.bytes = dump.slice(slots[first] * kPageBytes, region.size);
    bundle.code.push_back(std::move(region));
    first = end;
  }
}

// Returns the failure of a stream, or nothing.
std::optional<base::Failure> add_stream(trace::TraceBundle& bundle, const std::string& path,
                                        const std::string& name) {
  auto data = member(path, name.c_str());
  if (!data.ok()) return data.failure();
  if (!has_early_psb(data.value().bytes())) {
    return bad_file(join(path, name),
                    "expected an Intel PT stream with a PSB packet in its first 64 KiB, found " +
                        describe(data.value().bytes()));
  }
  trace::Stream stream;
  stream.name = name;
  stream.data = without_stop_byte(std::move(data.value()));
  bundle.streams.push_back(std::move(stream));
  return std::nullopt;
}

std::optional<base::Failure> add_streams(trace::TraceBundle& bundle, const std::string& path) {
  const auto dumps = numbered_files(path, kDumpName);
  if (is_file(join(path, "trace")) || dumps.empty()) return add_stream(bundle, path, "trace");
  for (const auto& [number, file] : dumps) {
    if (auto failure = add_stream(bundle, path, std::string(base::last_part(file)))) return failure;
  }
  return std::nullopt;
}

base::Result<trace::TraceBundle> read_libxdc(const std::string& path, const OpenOptions&) {
  trace::TraceBundle bundle;
  if (const auto failure = add_streams(bundle, path)) return *failure;
  auto addresses = member(path, "page_cache.addr");
  if (!addresses.ok()) return addresses.failure();
  auto dump = member(path, "page_cache.dump");
  if (!dump.ok()) return dump.failure();
  if (addresses.value().size() % kAddressBytes != 0) {
    return bad_file(join(path, "page_cache.addr"), "its size of " + std::to_string(addresses.value().size()) +
                                                       " bytes is not a multiple of 8");
  }
  const std::size_t listed = addresses.value().size() / kAddressBytes;
  const std::size_t stored = dump.value().size() / kPageBytes;
  if (listed != stored || dump.value().size() % kPageBytes != 0) {
    bundle.warnings.push_back(warn(trace::WarningCode::LIBXDC_PAGES_UNPAIRED, listed, stored).at(path));
  }
  add_pages(bundle, addresses.value(), dump.value(), std::min(listed, stored));
  return bundle;
}

}  // namespace

const Format kLibxdcFormat{"libxdc",
                           "a folder with trace, page_cache.addr and page_cache.dump (libxdc, kAFL, Nyx)",
                           &sniff_libxdc, &read_libxdc};

}  // namespace ptkit::formats
