// Snapshots of an AUX buffer: bytes that the newer one repeats.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "formats/perf_data/overlap.h"

namespace ptkit::formats::perf {
namespace {

const std::string kPsb = "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82";

// A trace with a PSB each 2048 bytes and without repetition.
std::string trace(std::size_t size) {
  std::mt19937 random(7);
  std::string out;
  while (out.size() < size) {
    out += kPsb;
    for (int i = 0; i < 2032; ++i) out += static_cast<char>(1 + random() % 250);
  }
  out.resize(size);
  return out;
}

std::optional<Overlap> find(const std::string& older, const std::string& newer) {
  const auto bytes = [](const std::string& text) {
    return base::Bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
  };
  return find_overlap(bytes(older), bytes(newer));
}

TEST(PerfOverlap, FindsWhereTheNewerSnapshotContinues) {
  const std::string ring = trace(30000);
  struct Case {
    std::size_t older_begin, older_end, newer_begin, newer_end;
  };
  for (const Case& one :
       {Case{0, 4000, 1000, 5000}, Case{0, 4000, 1900, 6000}, Case{0, 9000, 0, 12000},
        Case{5000, 9500, 3000, 12000}, Case{0, 8000, 2000, 10000}, Case{0, 3000, 0, 3000}}) {
    const auto found = find(ring.substr(one.older_begin, one.older_end - one.older_begin),
                            ring.substr(one.newer_begin, one.newer_end - one.newer_begin));
    ASSERT_TRUE(found) << one.older_begin;
    EXPECT_EQ(found->repeated, one.older_end - one.newer_begin) << one.older_begin;
    EXPECT_EQ(found->padding, 0U);
  }
}

TEST(PerfOverlap, FindsNoneWithoutProof) {
  const std::string ring = trace(30000);
  EXPECT_FALSE(find(ring.substr(0, 4000), ring.substr(4000, 4000)));  // consecutive by chance
  EXPECT_FALSE(find(ring.substr(0, 4000), ring.substr(9000, 4000)));
  EXPECT_FALSE(find(ring.substr(100, 1900), ring.substr(200, 4000)));  // without a PSB
  EXPECT_FALSE(find("", ring));
  EXPECT_FALSE(find(ring, ""));
  const std::string same(3000, '\x06');  // trace of a loop: all offsets look alike
  EXPECT_FALSE(find(same, same));
}

TEST(PerfOverlap, LeavesOutPadding) {
  const std::string ring = trace(12000);
  for (std::size_t zeros = 0; zeros < 8; ++zeros) {
    const auto found = find(ring.substr(0, 4000) + std::string(zeros, '\0'), ring.substr(1000, 4000));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->repeated, 3000U);
    EXPECT_EQ(found->padding, zeros);
  }
  EXPECT_FALSE(find(ring.substr(0, 4000) + std::string(8, '\0'), ring.substr(1000, 4000)));
}

TEST(PerfOverlap, TakesLinearTimeForRepetitiveBytes) {
  const std::string older(std::size_t{1} << 22U, '\x06');
  std::string newer(std::size_t{1} << 22U, '\x06');
  for (std::size_t i = 4000; i < newer.size(); i += 4001) newer[i] = 7;
  EXPECT_FALSE(find(older, newer));
}

}  // namespace
}  // namespace ptkit::formats::perf
