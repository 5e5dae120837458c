#include "code/image/placement.h"

#include <utility>

#include "code/image/image.h"

namespace ptkit::code::image {

std::vector<trace::SpaceId> spaces_with(trace::TraceBundle& bundle, std::uint64_t cr3) {
  std::vector<trace::SpaceId> found;
  for (std::size_t i = 0; i < bundle.spaces.size(); ++i) {
    if (has_cr3(bundle.spaces[i], cr3)) found.push_back(static_cast<trace::SpaceId>(i));
  }
  if (!found.empty()) return found;
  trace::Space& space = bundle.spaces.emplace_back();
  space.cr3 = cr3 & trace::kCr3Address;
  space.cr3_known = true;
  return {static_cast<trace::SpaceId>(bundle.spaces.size() - 1)};
}

void repeat_in(trace::TraceBundle& bundle, std::size_t first, std::span<const trace::SpaceId> spaces) {
  const std::size_t end = bundle.code.size();
  for (const trace::SpaceId space : spaces) {
    for (std::size_t i = first; i < end; ++i) {
      trace::CodeRegion region = bundle.code[i];
      region.space = space;
      bundle.code.push_back(std::move(region));
    }
  }
}

}  // namespace ptkit::code::image
