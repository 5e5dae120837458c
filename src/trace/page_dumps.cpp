#include "trace/page_dumps.h"

#include <algorithm>
#include <set>

namespace ptkit::trace {
namespace {

bool is_page(const CodeRegion& region) noexcept { return region.file < 0 && region.bytes.size() != 0; }

// The bytes that both regions have, and how many of them differ.
struct Overlap {
  std::size_t bytes = 0;
  std::size_t differing = 0;
};

Overlap overlap(const CodeRegion& page, const CodeRegion& image) noexcept {
  const std::uint64_t begin = std::max(page.address, image.address);
  const auto left = [begin](const CodeRegion& region) {
    const std::uint64_t skip = begin - region.address;
    return skip < region.bytes.size() ? region.bytes.bytes().subspan(static_cast<std::size_t>(skip))
                                      : base::Bytes{};
  };
  const base::Bytes of_page = left(page);
  const base::Bytes of_image = left(image);
  Overlap found{std::min(of_page.size(), of_image.size()), 0};
  for (std::size_t i = 0; i < found.bytes; ++i) found.differing += of_page[i] != of_image[i] ? 1U : 0U;
  return found;
}

}  // namespace

void order_below_page_dumps(TraceBundle& bundle, std::size_t added, const std::vector<std::int32_t>& over) {
  std::set<SpaceId> spaces;
  for (std::size_t i = added; i < bundle.code.size(); ++i) spaces.insert(bundle.code[i].space);
  for (const SpaceId space : spaces) {
    const auto recorded = bundle.code.begin() + static_cast<std::ptrdiff_t>(added);
    const auto page = std::find_if(bundle.code.begin(), recorded, [space](const CodeRegion& region) {
      return region.space == space && is_page(region);
    });
    if (page == recorded) continue;
    const auto others = std::stable_partition(recorded, bundle.code.end(), [&](const CodeRegion& region) {
      return region.space == space && region.file >= 0 && std::ranges::find(over, region.file) == over.end();
    });
    added += static_cast<std::size_t>(others - recorded);
    std::rotate(page, recorded, others);
  }
}

PageComparison compare_with_pages(const TraceBundle& bundle, std::int32_t file) {
  PageComparison result;
  for (const CodeRegion& page : bundle.code) {
    if (!is_page(page)) continue;
    Overlap both;
    for (const CodeRegion& image : bundle.code) {
      if (image.file != file || (image.space != kAnySpace && image.space != page.space)) continue;
      const Overlap one = overlap(page, image);
      both.bytes += one.bytes;
      both.differing += one.differing;
    }
    if (both.bytes == 0) continue;
    ++result.pages;
    if (both.differing > both.bytes / 2) ++result.differing;
  }
  return result;
}

}  // namespace ptkit::trace
