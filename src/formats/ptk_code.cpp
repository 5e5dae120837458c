#include "formats/ptk_code.h"

#include <algorithm>
#include <map>

namespace ptkit::formats::ptk {

namespace {

// By where they end in the file.
using Parts = std::map<std::uint64_t, trace::CodeRegion>;

std::uint64_t end_of(std::uint64_t from, std::uint64_t size) {
  return size > trace::kTscMax - from ? trace::kTscMax : from + size;
}

void add_pieces(const trace::CodeRegion& region, const Parts& parts, std::vector<trace::CodeRegion>& out) {
  const std::uint64_t end = end_of(region.file_offset, region.size);
  for (auto at = parts.upper_bound(region.file_offset); at != parts.end(); ++at) {
    const trace::CodeRegion& part = at->second;
    const std::uint64_t from = std::max(part.file_offset, region.file_offset);
    const std::uint64_t to = std::min(at->first, end);
    if (from >= to) continue;
    trace::CodeRegion piece = region;
    piece.address += from - region.file_offset;
    piece.file_offset = from;
    piece.size = to - from;
    piece.bytes = part.bytes.slice(from - part.file_offset, to - from);
    out.push_back(std::move(piece));
  }
}

}  // namespace

void share_code(std::vector<trace::CodeRegion>& code) {
  std::map<std::int32_t, Parts> files;
  for (const trace::CodeRegion& region : code) {
    if (!region.shared || region.file < 0 || region.bytes.size() == 0) continue;
    files[region.file].emplace(end_of(region.file_offset, region.bytes.size()), region);
  }
  if (files.empty()) return;
  std::vector<trace::CodeRegion> pieces;
  for (const trace::CodeRegion& region : code) {
    if (!region.shared || region.bytes.size() != 0) continue;
    if (const auto file = files.find(region.file); file != files.end())
      add_pieces(region, file->second, pieces);
  }
  code.insert(code.end(), std::make_move_iterator(pieces.begin()), std::make_move_iterator(pieces.end()));
}

}  // namespace ptkit::formats::ptk
