// A folder as kAFL, Nyx and libxdc write it: `trace` (a raw stream; kAFL and Nyx: `pt_trace_dump_N`, one for
// each run) and a page cache: `page_cache.addr` holds
// one 64-bit address for each 4096-byte page of `page_cache.dump`.
#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/paths.h"
#include "formats/files.h"
#include "formats/names.h"
#include "formats/readers.h"
#include "formats/stop_byte.h"

namespace ptkit::formats {

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kAddressBytes = 8;
constexpr std::string_view kDumpName = "pt_trace_dump_";

bool sniff(const std::string& path) {
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

// Slots of usable pages, in file order: an address with low bits set marks a page that was not mapped (its
// slot in the dump counts all the same), and the first of several entries for one page wins.
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
    std::size_t end = first + 1;  // neighbours in memory and in the dump become one region
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

// What is wrong with it, or nothing.
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

base::Result<trace::TraceBundle> read(const std::string& path, const OpenOptions&) {
  trace::TraceBundle bundle;
  if (const auto failure = add_streams(bundle, path)) return *failure;
  auto addresses = member(path, "page_cache.addr");
  if (!addresses.ok()) return addresses.failure();
  auto dump = member(path, "page_cache.dump");
  if (!dump.ok()) return dump.failure();
  if (addresses.value().size() % kAddressBytes != 0) {
    return bad_file(join(path, "page_cache.addr"),
                    "its size of " + std::to_string(addresses.value().size()) + " bytes is no multiple of 8");
  }
  const std::size_t listed = addresses.value().size() / kAddressBytes;
  const std::size_t stored = dump.value().size() / kPageBytes;
  if (listed != stored || dump.value().size() % kPageBytes != 0) {
    bundle.warnings.push_back(path + ": page_cache.addr lists " + std::to_string(listed) +
                              " pages and page_cache.dump holds " + std::to_string(stored) +
                              " whole ones; the pages without a partner are not used.");
  }
  add_pages(bundle, addresses.value(), dump.value(), std::min(listed, stored));
  return bundle;
}

}  // namespace

const Format kLibxdcFormat{
    "libxdc", "a folder with trace, page_cache.addr and page_cache.dump (libxdc, kAFL, Nyx)", &sniff, &read};

}  // namespace ptkit::formats
