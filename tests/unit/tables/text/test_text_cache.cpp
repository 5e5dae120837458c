// Texts by key, as many as there are.
#include <gtest/gtest.h>

#include <string>

#include "tables/text/text_cache.h"

namespace ptkit::tables::text {
namespace {

std::string_view text(const TextCache& cache, const TextCache::Key& key) {
  const TextCache::Ref* const ref = cache.find(key);
  return ref == nullptr ? "-" : std::string_view(cache.text_of(*ref), ref->size);
}

TEST(TextCache, FindsTextsByTheWholeKey) {
  TextCache cache;
  cache.insert({1, 2, 3}, cache.store("one"));
  cache.insert({1, 2, 4}, cache.store(""));
  EXPECT_EQ(text(cache, {1, 2, 3}), "one");
  EXPECT_EQ(text(cache, {1, 2, 4}), "");
  EXPECT_EQ(text(cache, {1, 3, 3}), "-");
  EXPECT_EQ(text(cache, {2, 2, 3}), "-");
}

TEST(TextCache, KeepsTextsWhenItGrows) {
  TextCache cache;
  constexpr std::uint64_t kCount = 100'000;
  for (std::uint64_t ip = 0; ip < kCount; ++ip) {
    ASSERT_TRUE(cache.reserve());
    cache.insert({ip, ip % 3, 0}, cache.store(std::to_string(ip)));
  }
  for (std::uint64_t ip = 0; ip < kCount; ++ip) ASSERT_EQ(text(cache, {ip, ip % 3, 0}), std::to_string(ip));
}

TEST(TextCache, DropsTextsThatTakeTooMuchMemory) {
  TextCache cache;
  const std::string large(std::size_t{1} << 26U, 'x');
  std::size_t kept = 0;
  while (cache.reserve()) {
    cache.insert({kept, 0, 0}, cache.store(large));
    ASSERT_LT(++kept, 100U);
  }
  EXPECT_GT(kept, 2U);
  EXPECT_EQ(text(cache, {0, 0, 0}), "-");
  cache.insert({0, 0, 0}, cache.store("again"));
  EXPECT_EQ(text(cache, {0, 0, 0}), "again");
}

}  // namespace
}  // namespace ptkit::tables::text
