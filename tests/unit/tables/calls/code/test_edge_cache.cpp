// Caches of facts give what was looked up first, however many there are.
#include <gtest/gtest.h>

#include "tables/calls/code/ip_map.h"
#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

TEST(EdgeCache, GrowsAndKeepsTheFactsOfEachEdge) {
  GivenCode code;
  code.flags[kG] = CODE_SETJMP;
  EdgeCache edges(code);
  const std::uint64_t least = edges.bytes();
  for (int round = 0; round < 2; ++round) {
    for (std::uint64_t from = 0; from < 200; ++from) {
      for (std::uint64_t to = 0; to < 200; ++to) {
        const EdgeFacts& edge = edges.at(kMain + from * GivenCode::kInsn, to * GivenCode::kSize);
        ASSERT_EQ(edge.from, kMain + from * GivenCode::kInsn);
        ASSERT_EQ(edge.to, to * GivenCode::kSize);
        ASSERT_EQ(edge.function, code.function_at(edge.to));
        ASSERT_EQ(edge.next, edge.from + GivenCode::kInsn);
        ASSERT_EQ(edge.is(EDGE_PLAIN), edge.to != kG && edge.to != edge.next);
      }
    }
  }
  EXPECT_GT(edges.bytes(), 4 * least);
}

TEST(EdgeCache, HasTheFactsOfOneVersionOfTheCode) {
  GivenCode code;
  EdgeCache edges(code);
  EXPECT_TRUE(edges.at(kMain, kF).is(EDGE_PLAIN));
  code.flags[kF] = CODE_SETJMP;
  edges.follow({.number = 7});
  EXPECT_FALSE(edges.at(kMain, kF).is(EDGE_PLAIN));
}

TEST(IpMap, KeepsValuesWhileItGrows) {
  IpMap<std::uint64_t> map;
  for (std::uint64_t ip = 0; ip < 10'000; ++ip) {
    const auto [value, is_new] = map.find_or_add(ip << 12U);
    ASSERT_TRUE(is_new);
    *value = ip;
  }
  for (std::uint64_t ip = 0; ip < 10'000; ++ip) {
    const auto [value, is_new] = map.find_or_add(ip << 12U);
    ASSERT_FALSE(is_new);
    ASSERT_EQ(*value, ip);
  }
}

}  // namespace
}  // namespace ptkit::tables::calls
