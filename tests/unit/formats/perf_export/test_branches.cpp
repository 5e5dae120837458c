// Branch records in written perf.data (BTS): its bytes, and the result of reading it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "trace/branch_record.h"
#include "trace/branch_records.h"
#include "unit/support/warned.h"
#include "writing.h"

namespace ptkit::formats {
namespace {

using test::region;
using test::small_bundle;
using trace::BranchRecord;
using trace::kNoId;

constexpr std::size_t kBytes = sizeof(BranchRecord);

class PerfWriteBranches : public test::PerfWriting {
 protected:
  // Returns the failure's detail, or nothing.
  std::string refusal(const trace::TraceBundle& bundle) {
    const auto written = write_perf_data(bundle, path(), {});
    return written.ok() ? std::string() : written.failure().detail;
  }
};

BranchRecord branch(std::uint64_t from, std::uint64_t tsc = 0, std::uint32_t flags = 0) {
  return {.from_ip = from, .to_ip = from + 1, .tsc = tsc, .flags = flags, .cycles = 0};
}

trace::TraceBundle bundle_of(std::vector<BranchRecord> records) {
  trace::TraceBundle bundle = small_bundle();
  bundle.streams[0].kind = trace::StreamKind::BRANCH_RECORDS;
  bundle.streams[0].data = trace::to_buffer(std::move(records));
  return bundle;
}

// "from@tsc" of each record; * marks RECORD_FIRST.
std::string text(const trace::Stream& stream) {
  std::string out;
  const base::Bytes bytes = stream.data.bytes();
  for (std::size_t at = 0; at + kBytes <= bytes.size(); at += kBytes) {
    BranchRecord one;
    std::memcpy(&one, bytes.data() + at, kBytes);
    EXPECT_EQ(one.to_ip, one.from_ip + 1);
    if ((one.flags & trace::RECORD_FIRST) != 0) out += "*";
    if ((one.flags & trace::RECORD_PREDICTED) != 0) out += "+";
    out.append(std::to_string(one.from_ip));
    if (one.tsc != 0) out.append("@").append(std::to_string(one.tsc));
    out.append(" ");
  }
  return out;
}

TEST_F(PerfWriteBranches, WritesBranchesOfAThread) {
  const trace::TraceBundle back = write_and_read(
      bundle_of({branch(10), branch(12, 100), branch(14, 0, trace::RECORD_PREDICTED), branch(16, 200)}));
  ASSERT_EQ(back.streams.size(), 1U);
  const trace::Stream& stream = back.streams[0];
  EXPECT_EQ(stream.kind, trace::StreamKind::BRANCH_RECORDS);
  EXPECT_EQ(stream.tid, 10);
  EXPECT_EQ(stream.pid, 10);
  EXPECT_EQ(back.spaces.at(stream.space).pid, 10);
  EXPECT_EQ(text(stream), "*10 12@100 +14 16@200 ");
  EXPECT_TRUE(stream.losses.empty());
  EXPECT_FALSE(back.configuration.rtit_ctl_known);
  // AUXTRACE_INFO of BTS has no further fields.
  const auto info = records(perf::AUXTRACE_INFO);
  ASSERT_EQ(info.size(), 1U);
  EXPECT_EQ(base::load_le<4>(info[0].body.data()), 2U);
  EXPECT_EQ(info[0].body.size(), 56U);
  EXPECT_NE(contents().find("intel_bts//u"), std::string::npos);
}

// perf attributes a buffer's branches to one thread.
TEST_F(PerfWriteBranches, WritesABufferPerThreadOfACpu) {
  trace::TraceBundle bundle =
      bundle_of({branch(10), branch(12, 100), branch(14, 200), branch(16, 300), branch(18)});
  bundle.spaces.push_back({.pid = 20});
  trace::Stream& stream = bundle.streams[0];
  stream.cpu = 3;
  stream.pid = stream.tid = kNoId;
  stream.space = trace::kAnySpace;
  stream.switches_by_offset = true;
  stream.switches = {{.tsc = 50, .pid = 10, .tid = 11, .space = 1, .offset = 0},
                     {.tsc = 150, .pid = 20, .tid = 21, .space = 2, .offset = 2 * kBytes},
                     {.tsc = 250, .pid = 10, .tid = 11, .space = 1, .offset = 3 * kBytes},
                     {.tsc = 350, .offset = 4 * kBytes}};
  const PerfDataWritten written = write(bundle);
  EXPECT_TRUE(warns(written.notes, WarningCode::EXPORT_STREAM_WITHOUT_TID, 1));
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.streams.size(), 3U);
  EXPECT_EQ(back.streams[0].tid, 11);
  EXPECT_EQ(text(back.streams[0]), "*10 12@100 16@300 ");
  EXPECT_EQ(back.streams[1].tid, 21);
  EXPECT_EQ(back.streams[1].pid, 20);
  EXPECT_EQ(text(back.streams[1]), "*14@200 ");
  EXPECT_GT(back.streams[2].tid, 4'000'000);
  EXPECT_EQ(text(back.streams[2]), "*18 ");
  for (const trace::Stream& one : back.streams) EXPECT_TRUE(one.losses.empty());
  // Streams of two CPUs may have branches of one thread.
  stream.switches.pop_back();
  bundle.streams.push_back(stream);
  bundle.streams[1].cpu = 4;
  const trace::TraceBundle both = write_and_read(bundle);
  ASSERT_EQ(both.streams.size(), 4U);
  EXPECT_EQ(text(both.streams[0]), "*10 12@100 16@300 18 ");
  EXPECT_EQ(text(both.streams[2]), "*10 12@100 16@300 18 ");
}

// An AUX record of a kernel trace breaks the path of branches.
TEST_F(PerfWriteBranches, WritesTimesOfKernelTracesOnlyAtBrokenPaths) {
  trace::TraceBundle bundle = bundle_of(
      {branch(10), branch(12, 100), branch(14, 200), branch(16, 0, trace::RECORD_FIRST), branch(18, 300)});
  trace::CodeRegion& kernel = bundle.code.emplace_back(region(0, "x"));
  kernel.address = 0xffffffff81000000;
  EXPECT_EQ(text(write_and_read(bundle).streams.at(0)), "*10 12 14@200 *16 18@300 ");
}

// A thread runs again. Its branches in between are unknown.
TEST_F(PerfWriteBranches, BreaksPathsWhereAThreadRunsAgain) {
  trace::TraceBundle bundle = bundle_of({branch(10), branch(12), branch(14, 0, trace::RECORD_FIRST)});
  trace::Stream& stream = bundle.streams[0];
  stream.switches_by_offset = true;
  stream.switches = {{.tsc = 0, .pid = 10, .tid = 11, .space = 1, .offset = 0},
                     {.tsc = 0, .pid = 10, .tid = 12, .space = 1, .offset = kBytes},
                     {.tsc = 0, .pid = 10, .tid = 11, .space = 1, .offset = 2 * kBytes}};
  const trace::TraceBundle back = write_and_read(bundle);
  EXPECT_EQ(text(back.streams.at(0)), "*10 *14 ");
  ASSERT_EQ(back.streams[0].losses.size(), 1U);
  EXPECT_EQ(back.streams[0].losses[0].offset, kBytes);
}

TEST_F(PerfWriteBranches, WritesLosses) {
  using base::Status;
  trace::TraceBundle bundle =
      bundle_of({branch(10), branch(12), branch(14, 100), branch(16), branch(18, 0, trace::RECORD_FIRST)});
  auto& losses = bundle.streams[0].losses;
  losses = {{0, Status::BUFFER_FULL, 0},
            {kBytes, Status::RING_WRAPPED, 240},
            {2 * kBytes, Status::BUFFER_FULL, 48},
            {3 * kBytes, Status::RING_WRAPPED, 0},
            {5 * kBytes, Status::BUFFER_FULL, 0}};
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.streams.size(), 1U);
  EXPECT_EQ(text(back.streams[0]), "*10 *12 *14@100 *16 *18 ");
  // RECORD_FIRST without a recorded loss is written as a loss.
  losses.insert(losses.begin() + 4, {4 * kBytes, Status::BUFFER_FULL, 0});
  const auto& found = back.streams[0].losses;
  ASSERT_EQ(found.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(found[i].offset, losses[i].offset);
    EXPECT_EQ(found[i].cause, losses[i].cause);
    EXPECT_EQ(found[i].lost_bytes, losses[i].lost_bytes);
  }
}

// A context switch after the last record has no records. A loss there is written once.
TEST_F(PerfWriteBranches, AcceptsASwitchAtTheEnd) {
  trace::TraceBundle bundle = bundle_of({branch(10), branch(12)});
  trace::Stream& stream = bundle.streams[0];
  stream.switches_by_offset = true;
  stream.switches = {{.tsc = 0, .pid = 10, .tid = 11, .space = 1, .offset = 0},
                     {.tsc = 0, .pid = 10, .tid = 12, .space = 1, .offset = kBytes},
                     {.tsc = 0, .pid = 10, .tid = 11, .space = 1, .offset = 2 * kBytes},
                     {.tsc = 0, .pid = 10, .tid = 11, .space = 1, .offset = 9 * kBytes}};
  stream.losses = {{2 * kBytes, base::Status::BUFFER_FULL, 0}};
  const trace::TraceBundle back = write_and_read(bundle);
  ASSERT_EQ(back.streams.size(), 2U);
  EXPECT_EQ(text(back.streams[0]), "*10 ");
  EXPECT_TRUE(back.streams[0].losses.empty());
  EXPECT_EQ(text(back.streams[1]), "*12 ");
  EXPECT_EQ(back.streams[1].losses.size(), 1U);
}

TEST_F(PerfWriteBranches, SplitsLongStreamsIntoChunks) {
  std::vector<BranchRecord> all;
  for (std::uint64_t i = 0; i < 600'000; ++i)
    all.push_back(branch(10 + 2 * i, i % 100'000 == 99'999 ? i : 0));
  const trace::TraceBundle bundle = bundle_of(all);
  const trace::TraceBundle back = write_and_read(bundle);
  EXPECT_EQ(text(back.streams.at(0)).substr(1), text(bundle.streams[0]));
  EXPECT_TRUE(back.streams[0].losses.empty());
  EXPECT_EQ(records(perf::AUXTRACE).size(), 6U);  // each ends at a known time
  int count = 0;
  const auto stopped = write_perf_data(bundle, path(), {.go_on = [&] { return ++count < 12; }});
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.failure().status, base::Status::INTERRUPTED);
}

TEST_F(PerfWriteBranches, NotesDroppedFields) {
  const auto notes = [this](const BranchRecord& record) { return write(bundle_of({record})).notes; };
  BranchRecord record = branch(10);
  EXPECT_FALSE(warns(notes(record), WarningCode::EXPORT_BTS_FIELDS));
  record.cycles = 5;
  record.flags = trace::RECORD_CODE32 | trace::RECORD_ABORT;
  EXPECT_TRUE(warns(notes(record), WarningCode::EXPORT_BTS_FIELDS,
                    "cycles between branches, transactions, that code is 32-bit code"));
}

TEST_F(PerfWriteBranches, RefusesMixedStreams) {
  trace::TraceBundle bundle = bundle_of({branch(10)});
  bundle.streams[0].name = "cpu 0";
  bundle.streams.push_back(small_bundle().streams[0]);
  EXPECT_NE(refusal(bundle).find("leave out these streams of branch records, or all others: 'cpu 0'"),
            std::string::npos);
  bundle.streams.pop_back();
  bundle.streams[0].switches = {{100, 10, 11, 1}};
  EXPECT_NE(refusal(bundle).find("has context switches by time"), std::string::npos);
  bundle.streams[0].switches_by_offset = true;
  EXPECT_EQ(refusal(bundle), "");
}

}  // namespace
}  // namespace ptkit::formats
