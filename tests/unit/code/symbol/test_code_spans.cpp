// Regions that have bytes of a range of their file, compared with a search through all of them.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "code/symbol/code_spans.h"

namespace ptkit::code::symbol {
namespace {

using Regions = std::vector<std::uint32_t>;

Regions overlapping(const CodeSpans& spans, std::int32_t file, std::uint64_t offset, std::uint64_t size) {
  Regions found;
  spans.overlapping(file, offset, size, [&](std::uint32_t region) { found.push_back(region); });
  return found;
}

TEST(CodeSpans, FindsWhatASearchThroughAllRegionsFinds) {
  std::mt19937 random(1);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  for (std::uint32_t count = 0; count < 40; ++count) {
    std::vector<CodeSpans::Span> all;
    for (std::uint32_t i = 0; i < count; ++i)
      all.push_back(
          {static_cast<std::int32_t>(below(3)) - 1, below(200), 1 + below(i % 5 == 0 ? 200 : 9), i});
    const CodeSpans spans(all);
    for (int round = 0; round < 50; ++round) {
      const auto file = static_cast<std::int32_t>(below(4)) - 1;
      const std::uint64_t offset = below(220);
      const std::uint64_t size = 1 + below(30);
      Regions expected;
      for (const CodeSpans::Span& one : all) {
        if (one.file == file && one.offset < offset + size && offset < one.offset + one.size)
          expected.push_back(one.region);
      }
      ASSERT_EQ(overlapping(spans, file, offset, size), expected) << count << ", " << round;
    }
  }
}

TEST(CodeSpans, EndsWithTheAddressSpace) {
  constexpr std::uint64_t kLast = ~std::uint64_t{0};
  const CodeSpans spans({{0, kLast - 1, 100, 7}, {0, 5, kLast, 8}});
  EXPECT_EQ(overlapping(spans, 0, kLast, 1), (Regions{7, 8}));
  EXPECT_EQ(overlapping(spans, 0, 0, 5), (Regions{}));
  EXPECT_EQ(overlapping(spans, 0, 6, kLast), (Regions{7, 8}));
  EXPECT_EQ(overlapping(spans, 0, 5, 0), (Regions{8}));
}

}  // namespace
}  // namespace ptkit::code::symbol
