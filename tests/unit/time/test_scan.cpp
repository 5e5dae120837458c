// Frames read 64 bytes at a time against frames read packet by packet.
#include <gtest/gtest.h>

#include <random>

#include "base/fields.h"
#include "time/reader.h"
#include "unit/time/synthetic.h"

namespace ptkit::time::test {
namespace {

void expect_equal(const Frame& wide, const Frame& narrow) {
  ASSERT_EQ(wide.tsc_mtc_points.size(), narrow.tsc_mtc_points.size());
  for (std::size_t i = 0; i < wide.tsc_mtc_points.size(); ++i) {
    ASSERT_TRUE(wide.tsc_mtc_points[i] == narrow.tsc_mtc_points[i])
        << "point " << i << " at " << narrow.tsc_mtc_points[i].extent.first;
  }
  ASSERT_EQ(wide.cycles.size, narrow.cycles.size);
  ASSERT_EQ(wide.cycles.any_lost, narrow.cycles.any_lost);
  ASSERT_EQ(wide.cycles.ratios_differ, narrow.cycles.ratios_differ);
  for (std::size_t i = 0; i < wide.cycles.size; ++i) {
    ASSERT_EQ(wide.cycles.extent[i].first, narrow.cycles.extent[i].first) << i;
    ASSERT_EQ(wide.cycles.extent[i].last, narrow.cycles.extent[i].last) << narrow.cycles.extent[i].first;
    ASSERT_EQ(wide.cycles.weight[i], narrow.cycles.weight[i]) << narrow.cycles.extent[i].first;
    ASSERT_EQ(wide.cycles.ratio[i], narrow.cycles.ratio[i]) << narrow.cycles.extent[i].first;
    ASSERT_EQ(wide.cycles.flags[i], narrow.cycles.flags[i]) << narrow.cycles.extent[i].first;
  }
  ASSERT_EQ(wide.end, narrow.end);
  ASSERT_EQ(wide.end_tsc, narrow.end_tsc);
  ASSERT_EQ(wide.next_ratio, narrow.next_ratio);
  ASSERT_EQ(wide.lost_at_end, narrow.lost_at_end);
  ASSERT_EQ(wide.psb, narrow.psb);
}

// All that is carried to the next frame.
std::vector<std::uint8_t> state_of(FrameReader reader) {
  base::FieldWriter fields;
  static_cast<void>(reader.describe(fields));
  return std::move(fields.bytes());
}

void compare(const std::vector<std::uint8_t>& bytes, TntTime tnt_time, const packet::Errata& errata,
             std::span<const trace::KnownLoss> losses = {}) {
  FrameReader wide(bytes, losses, errata);
  FrameReader narrow(bytes, losses, errata);
  narrow.use(base::cpu::Isa::SCALAR);
  wide.set_tnt_time(tnt_time);
  narrow.set_tnt_time(tnt_time);
  Frame one;
  Frame other;
  for (bool more = true; more;) {
    more = narrow.next(other);
    ASSERT_EQ(wide.next(one), more);
    ASSERT_NO_FATAL_FAILURE(expect_equal(one, other));
    ASSERT_EQ(state_of(wide), state_of(narrow)) << narrow.position();
  }
}

void put(std::vector<std::uint8_t>& bytes, std::initializer_list<unsigned> more) {
  for (const unsigned byte : more) bytes.push_back(static_cast<std::uint8_t>(byte));
}

void put_psb(std::vector<std::uint8_t>& bytes) {
  for (int i = 0; i < 8; ++i) put(bytes, {0x02, 0x82});
  put(bytes, {0x19, 1, 2, 3, 4, 5, 6, 7, 0x02, 0x23});
}

// All packets that the first byte identifies, in any order, with occasional other packets.
std::vector<std::uint8_t> random_packets(std::mt19937_64& random, std::size_t size) {
  static const std::vector<std::vector<std::uint8_t>> kOthers = {{0x02, 0x03, 20, 0},
                                                                 {0x02, 0x03, 30, 0},
                                                                 {0x99, 0x01},
                                                                 {0x02, 0xf3},
                                                                 {0x02, 0xa3, 1, 2, 3, 0, 0, 0},
                                                                 {0x07, 0xff, 0xff, 0xfe},
                                                                 {0x02, 0x63, 0x84},
                                                                 {0x02, 0x33},
                                                                 {0x19, 9, 9, 9, 9, 9, 9, 9},
                                                                 {0x07, 0x02, 0xf3},
                                                                 {0xa5}};
  std::vector<std::uint8_t> bytes;
  put_psb(bytes);
  const unsigned kinds = 3 + static_cast<unsigned>(random() % 6);
  while (bytes.size() < size) {
    const auto byte = static_cast<unsigned>(random() & 0xff);
    switch (random() % kinds) {
      case 0:
        put(bytes, {(byte & 0xfe) < 4 ? 0x1c : byte & 0xfe});
        break;
      case 1:
        put(bytes, {(byte & 0xf8) | 3});
        break;
      case 2:
        put(bytes, {(byte & 0xf8) | 7, byte & 0xfe});
        break;
      case 3:
        put(bytes, {0x59, byte});
        break;
      case 4:
        put(bytes, {0x2d, byte, byte});
        break;
      case 5:
        put(bytes, {0x1d});
        break;
      case 6:
        put(bytes, {0});
        break;
      case 7:
        put(bytes, {(byte & 0xf8) | 7, byte | 1, (byte * 7) & 0xfe});
        break;
      default:
        if (random() % 40 == 0) put_psb(bytes);
        if (random() % 20 == 0) {
          const auto& other = kOthers[random() % kOthers.size()];
          bytes.insert(bytes.end(), other.begin(), other.end());
        }
        break;
    }
  }
  return bytes;
}

class WideScan : public testing::Test {
 protected:
  void SetUp() override {
    if (base::cpu::isa_choice().isa != base::cpu::Isa::AVX512)
      GTEST_SKIP() << "no AVX-512 here, or not wanted";
  }
};

constexpr std::array kTntTimes = {TntTime::UNKNOWN, TntTime::FIRST_BRANCH, TntTime::PACKET};

TEST_F(WideScan, RandomPackets) {
  std::mt19937_64 random(1);
  for (unsigned turn = 0; turn < 300; ++turn) {
    const auto bytes = random_packets(random, 200 + random() % 6000);
    packet::Errata errata{};
    errata.skd007 = turn % 2 == 0;
    compare(bytes, kTntTimes[turn % 3], errata);
    if (HasFatalFailure()) FAIL() << "turn " << turn;
  }
}

TEST_F(WideScan, WithLosses) {
  std::mt19937_64 random(2);
  for (unsigned turn = 0; turn < 60; ++turn) {
    const auto bytes = random_packets(random, 5000);
    std::vector<trace::KnownLoss> losses;
    for (std::uint64_t at = random() % 900; at < bytes.size(); at += 1 + random() % 900) {
      losses.push_back({at, base::Status::RING_WRAPPED, 1});
    }
    compare(bytes, kTntTimes[turn % 3], {}, losses);
    if (HasFatalFailure()) FAIL() << "turn " << turn;
  }
}

TEST_F(WideScan, SyntheticStreams) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SyntheticConfig config;
    config.seed = seed;
    config.branches = 10'000;
    config.cyc = true;
    config.first_branch = seed % 2 == 0;
    config.overflows = seed % 3 == 0 ? 1e-3 : 0;
    compare(synthesize(config).bytes, kTntTimes[seed % 3], {});
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

// A frame is cut at the same packet.
TEST_F(WideScan, ManyPointsWithoutTsc) {
  for (const bool mtc : {false, true}) {
    SyntheticConfig config;
    config.cyc = true;
    config.mtc = mtc;
    config.branches = 400'000;
    config.psb_bytes = std::uint64_t{1} << 40;
    compare(synthesize(config).bytes, TntTime::PACKET, {});
  }
}

}  // namespace
}  // namespace ptkit::time::test
