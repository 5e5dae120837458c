#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tables/calls/sums/quantiles.h"

namespace ptkit::tables::calls {
namespace {

std::uint64_t exact_quantile(std::vector<std::uint64_t> values, unsigned percent) {
  std::sort(values.begin(), values.end());
  const std::size_t rank = (values.size() * percent + 99) / 100;
  return values[std::max<std::size_t>(rank, 1) - 1];
}

TEST(Quantiles, AreExactForFewValues) {
  Quantiles quantiles;
  std::vector<std::uint64_t> values;
  std::mt19937_64 random(1);
  for (int i = 0; i < 1001; ++i) {
    values.push_back(random() >> (random() % 64));
    quantiles.add(values.back());
    EXPECT_EQ(quantiles.quantile(50), exact_quantile(values, 50));
    EXPECT_EQ(quantiles.quantile(99), exact_quantile(values, 99));
  }
  EXPECT_TRUE(quantiles.exact());
  EXPECT_EQ(quantiles.max(), *std::max_element(values.begin(), values.end()));
}

TEST(Quantiles, AreWithinOnePercentForMany) {
  for (const unsigned seed : {1U, 2U, 3U}) {
    Quantiles quantiles;
    Quantiles others;
    std::vector<std::uint64_t> values;
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < Quantiles::kMostExact * 2; ++i) {
      values.push_back(random() >> (20 + random() % 40));
      (i % 3 == 0 ? others : quantiles).add(values.back());
    }
    quantiles.add_all(others);
    EXPECT_FALSE(quantiles.exact());
    EXPECT_EQ(quantiles.count(), values.size());
    EXPECT_EQ(quantiles.max(), *std::max_element(values.begin(), values.end()));
    for (const unsigned percent : {1U, 50U, 99U}) {
      const auto right = static_cast<double>(exact_quantile(values, percent));
      EXPECT_LE(std::abs(static_cast<double>(quantiles.quantile(percent)) - right), right / 100);
    }
  }
}

// In which order they come, and in how many parts, does not matter.
TEST(Quantiles, AreExactForManyOfWhichFewDiffer) {
  for (const std::uint64_t different : {std::uint64_t{3}, std::uint64_t{Quantiles::kMostDifferent}}) {
    Quantiles quantiles;
    Quantiles others;
    std::vector<std::uint64_t> values;
    std::mt19937_64 random(different);
    for (std::size_t i = 0; i < Quantiles::kMostExact * 3; ++i) {
      values.push_back(random() % different << 30U);
      (random() % 2 == 0 ? others : quantiles).add(values.back());
    }
    quantiles.add_all(others);
    EXPECT_TRUE(quantiles.exact());
    EXPECT_EQ(quantiles.count(), values.size());
    for (const unsigned percent : {1U, 50U, 99U, 100U})
      EXPECT_EQ(quantiles.quantile(percent), exact_quantile(values, percent));
    EXPECT_LT(quantiles.bytes(), different * 64 + 4096);
  }
}

TEST(Quantiles, AreExactUpToTheirLimitsInAnyOrder) {
  constexpr std::uint64_t kMost = Quantiles::kMostDifferent;
  for (const std::uint64_t different : {kMost, kMost + 1}) {
    for (const bool first : {true, false}) {
      Quantiles quantiles;
      const auto add_different = [&] {
        for (std::uint64_t i = 0; i < different; ++i) quantiles.add(i);
      };
      if (first) add_different();
      for (std::size_t i = 0; i < Quantiles::kMostExact - different; ++i) quantiles.add(0);
      if (!first) add_different();
      EXPECT_TRUE(quantiles.exact());
      quantiles.add(0);
      EXPECT_EQ(quantiles.exact(), different == kMost);
    }
  }
}

TEST(Quantiles, HaveNoQuantileWithoutValues) {
  Quantiles quantiles;
  EXPECT_EQ(quantiles.quantile(50), 0U);
  quantiles.add(UINT64_MAX);
  EXPECT_EQ(quantiles.quantile(50), UINT64_MAX);
}

}  // namespace
}  // namespace ptkit::tables::calls
