#include <gtest/gtest.h>

#include "tables/columns/rows/row_filter.h"

namespace ptkit::tables::columns {
namespace {

constexpr std::uint8_t kBoth = flow::FROM_KNOWN | flow::TO_KNOWN;

flow::Context thread(std::int64_t pid, std::int64_t tid, trace::SpaceId space = 0) {
  flow::Context context;
  context.pid = pid;
  context.tid = tid;
  context.space = space;
  return context;
}

TEST(RowFilter, SelectsThreadsOfProcesses) {
  Selection selection;
  selection.pids = {5};
  selection.tids = {7, 8};
  RowFilter filter(selection);
  filter.follow(thread(5, 8));
  EXPECT_TRUE(filter.selects_context());
  EXPECT_TRUE(filter.selects(flow::Event{}));
  for (const auto& other : {thread(5, 9), thread(6, 7), thread(trace::kNoId, trace::kNoId)}) {
    filter.follow(other);
    EXPECT_FALSE(filter.selects_context());
    EXPECT_FALSE(filter.selects(flow::Event{}));
    EXPECT_FALSE(filter.selects(flow::FlowError{}));
    EXPECT_FALSE(filter.selects(flow::Gap{}));
    EXPECT_FALSE(filter.selects(packet::Packet{}));
  }
}

TEST(RowFilter, SelectsEventsByKind) {
  Selection selection;
  selection.event_kinds = std::uint64_t{1} << static_cast<unsigned>(flow::EventKind::PTWRITE);
  const RowFilter filter(selection);
  flow::Event event;
  EXPECT_FALSE(filter.selects(event));
  event.kind = flow::EventKind::PTWRITE;
  EXPECT_TRUE(filter.selects(event));
  EXPECT_TRUE(filter.selects(flow::Gap{}));
}

TEST(RowFilter, ContinuesInTheContextOfAnother) {
  Selection selection;
  selection.tids = {7};
  RowFilter before(selection);
  before.follow(thread(1, 2, 3));
  RowFilter filter(selection);
  filter.follow(before);
  EXPECT_FALSE(filter.selects_context());
  EXPECT_EQ(filter.space(), 3u);
}

TEST(RowFilter, UnknownTimesAreNotInAnInterval) {
  Selection selection;
  selection.by_time = true;
  selection.tsc_begin = 10;
  selection.tsc_end = 20;
  const RowFilter filter(selection);
  time::TimeRange range;
  range.tsc = 15;
  EXPECT_FALSE(filter.selects_time(range));
  range.known = true;
  EXPECT_TRUE(filter.selects_time(range));
  range.tsc = 20;
  EXPECT_FALSE(filter.selects_time(range));
  EXPECT_TRUE(RowFilter(Selection{}).selects_time({}));
}

TEST(RowFilter, AnEndOfAGapIsEnough) {
  Selection selection;
  selection.ips = {{0x100, 0x1ff}};
  const RowFilter filter(selection);
  flow::Gap gap;
  gap.from_ip = 0x100;
  gap.to_ip = 0x900;
  EXPECT_FALSE(filter.selects(gap)) << "neither end is known";
  gap.flags = flow::TO_KNOWN;
  EXPECT_FALSE(filter.selects(gap));
  gap.flags = kBoth;
  EXPECT_TRUE(filter.selects(gap));
}

TEST(RowFilter, ARowWithoutAnAddressIsInNoRange) {
  Selection selection;
  selection.ips = {{0, UINT64_MAX}};
  const RowFilter filter(selection);
  packet::Packet packet;
  EXPECT_FALSE(filter.selects(packet));
  packet.flags = packet::Packet::IP_KNOWN;
  EXPECT_TRUE(filter.selects(packet));
  flow::FlowError error;
  EXPECT_FALSE(filter.selects(error));
  error.ip_known = true;
  EXPECT_TRUE(filter.selects(error));
}

}  // namespace
}  // namespace ptkit::tables::columns
