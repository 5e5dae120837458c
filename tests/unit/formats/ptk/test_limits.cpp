// Limits of the sizes that a bundle unpacks to.
#include <gtest/gtest.h>

#include "formats/ptk/chunks.h"

namespace ptkit::formats::ptk {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

IndexEntry chunk(ChunkType type, std::uint64_t plain) {
  IndexEntry entry;
  entry.header.type = static_cast<std::uint32_t>(type);
  entry.header.plain_size = plain;
  return entry;
}

base::MemoryBound free_bytes(std::uint64_t bytes) { return {bytes, base::MemoryLimit::CGROUP}; }

std::string refusal(std::uint64_t file_bytes, const std::vector<IndexEntry>& entries,
                    std::uint64_t memory = UINT64_MAX) {
  const auto failure = check_sizes("a.ptk", file_bytes, entries, [memory] { return free_bytes(memory); });
  return failure ? failure->detail : "(none)";
}

TEST(PtkLimits, AllowFixedSizeForSmallFiles) {
  EXPECT_EQ(refusal(100, {chunk(ChunkType::CODE, 64 * kMiB)}), "(none)");
  EXPECT_EQ(
      refusal(100, {chunk(ChunkType::CODE, 64 * kMiB), chunk(ChunkType::SYMBOLS, 1)}),
      "a.ptk: its code, names and records unpack to 67108865 bytes, more than 1000 times the 100 bytes of "
      "the file; no recorder writes that: get the recording again");
}

TEST(PtkLimits, GrowWithTheFile) {
  const std::vector<IndexEntry> entries(200, chunk(ChunkType::CODE, 64 * kMiB));
  EXPECT_NE(refusal(440'000, entries), "(none)");
  EXPECT_EQ(refusal(200 * 64 * kMiB / 1000 + 1, entries), "(none)");
}

TEST(PtkLimits, IncludeFreeMemory) {
  const std::vector<IndexEntry> entries{chunk(ChunkType::CODE, 10 * kMiB), chunk(ChunkType::SIDEBAND, kMiB)};
  EXPECT_EQ(refusal(kMiB, entries, 100 * kMiB), "(none)");
  EXPECT_EQ(
      refusal(kMiB, entries, 60 * kMiB),
      "a.ptk: its code, names and records unpack to 11534336 bytes, which take 58720256 bytes of memory, "
      "and 55050240 are free (cgroup); open it where more memory is free");
}

TEST(PtkLimits, SkipTheMemoryQueryForSmallBundles) {
  int queries = 0;
  const auto check = [&](std::uint64_t plain) {
    const auto memory = [&] {
      ++queries;
      return free_bytes(1000 * kMiB);
    };
    EXPECT_FALSE(check_sizes("a.ptk", 100 * kMiB, std::vector{chunk(ChunkType::DATA, plain)}, memory));
  };
  check(kAlwaysFree);
  EXPECT_EQ(queries, 0);
  check(kAlwaysFree + 1);
  EXPECT_EQ(queries, 1);
}

TEST(PtkLimits, RefuseTraceThatExceedsMemoryAndFileRatio) {
  const std::vector<IndexEntry> entries(10, chunk(ChunkType::DATA, 64 * kMiB));
  EXPECT_EQ(refusal(100, entries, 1000 * kMiB), "(none)");          // it fits
  EXPECT_EQ(refusal(64 * kMiB / 10 + 1, entries, kMiB), "(none)");  // it is decoded in parts
  EXPECT_EQ(
      refusal(100'000, entries, 80 * kMiB),
      "a.ptk: its trace unpacks to 671088640 bytes, more than 100 times the 100000 bytes of the file, and "
      "73400320 are free (cgroup); open it where more memory is free");
}

TEST(PtkLimits, IgnoreChunksThatAreNotUnpacked) {
  EXPECT_EQ(refusal(100, {chunk(ChunkType::CODE, kMaxPlainBytes + 1)}, kMiB), "(none)");
  EXPECT_EQ(refusal(100, {chunk(static_cast<ChunkType>(fourcc("NEWS")), 64 * kMiB)}, kMiB), "(none)");
}

}  // namespace
}  // namespace ptkit::formats::ptk
