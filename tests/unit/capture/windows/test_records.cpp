#include <gtest/gtest.h>

#include "capture/windows/records.h"
#include "unit/capture/windows/fake_device.h"

namespace ptkit::capture {
namespace {

using namespace test;
using Kind = WindowsRecord::Kind;

TEST(WindowsRecords, ReadsEachKind) {
  std::vector<std::uint8_t> bytes;
  ptkit_record_fork fork{};
  fork.space.kernel_cr3 = 0x5000;
  fork.parent_pid = 4;
  append_record(bytes, fork, PTKIT_RECORD_FORK, 10, 100);
  append_space(bytes, 11, 100, 0x5000, 0x6000);
  append_image(bytes, 12, 100, 0x7ff000, 0x3000, PTKIT_IMAGE_BEFORE, u"\\Device\\x.dll");
  ptkit_record_exit exit{};
  exit.status = -5;
  append_record(bytes, exit, PTKIT_RECORD_EXIT, 13, 100, 101);
  ptkit_record_lost lost{};
  lost.count = 3;
  append_record(bytes, lost, PTKIT_RECORD_LOST, 14, 0);
  const WindowsRecords read = parse_records(bytes);
  EXPECT_EQ(read.bad_bytes, 0U);
  ASSERT_EQ(read.records.size(), 5U);
  EXPECT_EQ(read.records[0].kind, Kind::BEGIN);
  EXPECT_EQ(read.records[0].parent_pid, 4);
  EXPECT_EQ(read.records[0].kernel_cr3, 0x5000U);
  EXPECT_EQ(read.records[1].user_cr3, 0x6000U);
  EXPECT_EQ(read.records[2].path, "\\Device\\x.dll");
  EXPECT_TRUE(read.records[2].before);
  EXPECT_FALSE(read.records[2].kernel);
  EXPECT_EQ(read.records[3].status, -5);
  EXPECT_EQ(read.records[3].tid, 101);
  EXPECT_EQ(read.records[4].count, 3U);
}

TEST(WindowsRecords, LeavesOutUnknownTypes) {
  std::vector<std::uint8_t> bytes;
  append_record(bytes, ptkit_record{}, 99, 1, 1);
  append_space(bytes, 2, 7, 1, 1);
  const WindowsRecords read = parse_records(bytes);
  ASSERT_EQ(read.records.size(), 1U);
  EXPECT_EQ(read.records[0].pid, 7);
}

TEST(WindowsRecords, StopsAtImpossibleSizes) {
  for (const std::uint8_t size : {std::uint8_t{0}, std::uint8_t{25}, std::uint8_t{200}}) {
    std::vector<std::uint8_t> bytes;
    append_space(bytes, 1, 7, 1, 1);
    const std::size_t good = bytes.size();
    append_space(bytes, 2, 8, 1, 1);
    bytes[good + 2] = size;
    const WindowsRecords read = parse_records(bytes);
    EXPECT_EQ(read.records.size(), 1U);
    EXPECT_EQ(read.bad_bytes, bytes.size() - good);
  }
}

TEST(WindowsRecords, RefusesAPathBeyondItsRecord) {
  std::vector<std::uint8_t> bytes;
  append_image(bytes, 1, 1, 0x1000, 0x1000, 0, u"abcd");
  bytes[offsetof(ptkit_record_image, path_bytes)] = 0x80;
  EXPECT_TRUE(parse_records(bytes).records.empty());
}

TEST(WindowsRecords, ConvertsTexts) {
  const std::u16string text = u"a\u00e4\u20ac\U0001F600";
  const auto* const raw = reinterpret_cast<const std::uint8_t*>(text.data());
  EXPECT_EQ(utf8_of({raw, text.size() * 2}), "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
  const std::vector<std::uint8_t> alone{0x00, 0xd8, 'b', 0};
  EXPECT_EQ(utf8_of(alone),
            "\xef\xbf\xbd"
            "b");
}

}  // namespace
}  // namespace ptkit::capture
