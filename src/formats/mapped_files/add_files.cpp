#include "formats/mapped_files/add_files.h"

#include <utility>

#include "formats/mapped_files/binaries.h"

namespace ptkit::formats::perf {

namespace {

Mapping recorded_mapping(const FileMapping& from) {
  return {.owner = from.owner,
          .address = from.address,
          .size = from.size,
          .file_offset = from.file_offset,
          .path = from.path};
}

}  // namespace

void add_mapped_files(trace::TraceBundle& bundle, const MappedFileOptions& options,
                      std::span<const FileMapping> mappings) {
  Binaries binaries(bundle, options.own, {}, options.binaries);
  if (!options.recorded_at.empty()) binaries.recorded_at(options.recorded_at);
  for (const FileMapping& mapping : mappings) binaries.expect(recorded_mapping(mapping));
  for (const FileMapping& mapping : mappings) {
    trace::CodeRegion region;
    region.space = mapping.space;
    region.file = binaries.find(recorded_mapping(mapping));
    region.address = mapping.address;
    region.file_offset = mapping.file_offset;
    region.size = mapping.size;
    binaries.map_contents(region);
    if (region.size == 0 || region.address + (region.size - 1) < region.address) continue;
    bundle.code.push_back(std::move(region));
  }
  binaries.list_missing();
}

}  // namespace ptkit::formats::perf
