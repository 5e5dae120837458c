#include "formats/ptk/code_store.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ptkit::formats::ptk {

namespace {

// Regions of one file by the file offset of their end.
using RegionsByEnd = std::map<std::uint64_t, trace::CodeRegion>;

std::uint64_t end_of(std::uint64_t from, std::uint64_t size) {
  return size > trace::kTscMax - from ? trace::kTscMax : from + size;
}

void add_shared_regions(const trace::CodeRegion& region, const RegionsByEnd& regions,
                        std::vector<trace::CodeRegion>& out) {
  const std::uint64_t end = end_of(region.file_offset, region.size);
  for (auto at = regions.upper_bound(region.file_offset); at != regions.end(); ++at) {
    const trace::CodeRegion& part = at->second;
    const std::uint64_t from = std::max(part.file_offset, region.file_offset);
    const std::uint64_t to = std::min(at->first, end);
    if (from >= to) continue;
    trace::CodeRegion copy = region;
    copy.address += from - region.file_offset;
    copy.file_offset = from;
    copy.size = to - from;
    copy.bytes = part.bytes.slice(from - part.file_offset, to - from);
    out.push_back(std::move(copy));
  }
}

}  // namespace

void share_code(std::vector<trace::CodeRegion>& code) {
  std::map<std::int32_t, RegionsByEnd> files;
  for (const trace::CodeRegion& region : code) {
    if (!region.shared || region.file < 0 || region.bytes.size() == 0) continue;
    files[region.file].emplace(end_of(region.file_offset, region.bytes.size()), region);
  }
  if (files.empty()) return;
  std::vector<trace::CodeRegion> shared;
  for (const trace::CodeRegion& region : code) {
    if (!region.shared || region.bytes.size() != 0) continue;
    if (const auto file = files.find(region.file); file != files.end())
      add_shared_regions(region, file->second, shared);
  }
  code.insert(code.end(), std::make_move_iterator(shared.begin()), std::make_move_iterator(shared.end()));
}

void end_code(std::vector<trace::CodeRegion>& code, const std::vector<trace::CodeRegion>& ends) {
  if (ends.empty()) return;
  std::multimap<std::pair<trace::SpaceId, std::uint64_t>, trace::CodeRegion*> regions;
  for (trace::CodeRegion& region : code) regions.emplace(std::pair(region.space, region.address), &region);
  for (const trace::CodeRegion& end : ends) {
    const auto last = regions.lower_bound({end.space, end_of(end.address, end.size)});
    for (auto at = regions.lower_bound({end.space, end.address}); at != last; ++at) {
      trace::CodeRegion& region = *at->second;
      if (region.tsc_from < end.tsc_from) region.tsc_to = std::min(region.tsc_to, end.tsc_from);
    }
  }
}

}  // namespace ptkit::formats::ptk
