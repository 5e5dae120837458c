// Pages of code that a recording saved: dumps of DRAKVUF, page caches of libxdc. They are the code that ran,
// and no file names them; images beneath them have the names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::trace {

// The regions from `added` on are of images that the user gave: moves those of files before the first page
// that the recording has for their space, so that its pages supply the code. `over`: files that were given as
// code, which stay.
void order_below_page_dumps(TraceBundle& bundle, std::size_t added,
                            const std::vector<std::int32_t>& over = {});

struct PageComparison {
  std::size_t pages = 0;      // regions of no file that overlap the image
  std::size_t differing = 0;  // those of which most bytes differ; relocations change few
};

// Compares the image's code with the pages over it.
[[nodiscard]] PageComparison compare_with_pages(const TraceBundle& bundle, std::int32_t file);

}  // namespace ptkit::trace
