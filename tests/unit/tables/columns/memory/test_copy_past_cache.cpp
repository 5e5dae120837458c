#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tables/columns/memory/copy_past_cache.h"

namespace ptkit::tables::columns {
namespace {

TEST(CopyPastCache, CopiesAnyBytesAndNoOthers) {
  std::vector<std::uint8_t> from(1000);
  std::iota(from.begin(), from.end(), std::uint8_t{1});
  for (std::size_t offset = 0; offset < 70; ++offset) {
    for (const std::size_t size : {0U, 1U, 15U, 63U, 64U, 65U, 127U, 200U, 777U}) {
      std::vector<std::uint8_t> to(1000, 0xee);
      auto wanted = to;
      std::copy_n(from.begin() + 3, size, wanted.begin() + static_cast<std::ptrdiff_t>(offset));
      copy_past_cache(to.data() + offset, from.data() + 3, size);
      ASSERT_EQ(to, wanted) << offset << " " << size;
    }
  }
}

}  // namespace
}  // namespace ptkit::tables::columns
