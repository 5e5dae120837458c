#include "code/bounds/call_sites.h"

#include <algorithm>

#include "code/bounds/cursor.h"

namespace ptkit::code::bounds {

std::vector<CallSite> CallSiteReader::read(const FrameEntry& frame) {
  std::vector<CallSite> found;
  const auto place = frame.call_sites != 0 ? places_.find(frame.call_sites) : std::nullopt;
  if (!place) return found;
  const base::Bytes bytes = file_.bytes().subspan(static_cast<std::size_t>(place->offset),
                                                  static_cast<std::size_t>(std::min(place->left, left_)));
  Cursor from(bytes, frame.call_sites, file_.header().e_ident[EI_CLASS] == ELFCLASS64);
  // Landing pads count from the function's begin, unless the table has another base.
  const std::uint8_t base_encoding = from.byte();
  const std::uint64_t base =
      base_encoding == kOmitted ? frame.begin : from.pointer(base_encoding).value_or(0);
  if (from.byte() != kOmitted) from.uleb();  // where the table of types ends
  const std::uint8_t encoding = from.byte();
  const std::uint64_t size = from.uleb();
  Cursor sites = from.part(size);
  left_ -= from.good() ? from.at() : 0;
  while (sites.good() && sites.left() != 0) {
    const std::uint64_t begin = sites.value(encoding);
    const std::uint64_t length = sites.value(encoding);
    const std::uint64_t pad = sites.value(encoding);
    sites.uleb();  // action: what the landing pad catches
    const bool is_inside = begin < frame.size && length <= frame.size - begin;
    if (!sites.good() || !is_inside) break;
    if (pad == 0 || length == 0) continue;
    found.push_back({frame.begin + begin, frame.begin + begin + length, base + pad});
  }
  return found;
}

}  // namespace ptkit::code::bounds
