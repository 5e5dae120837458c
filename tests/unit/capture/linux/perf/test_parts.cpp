// Parts of the perf back end: rings, clock, buffers with random bytes.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "capture/linux/perf/bts_buffer.h"
#include "capture/linux/perf/buffer.h"
#include "capture/linux/perf/running_thread.h"
#include "fake_perf.h"
#include "formats/registry.h"

namespace ptkit::capture::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes counted(std::size_t count, std::uint8_t first = 1) {
  Bytes out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::uint8_t>(first + i % 199);
  return out;
}

// ---- PerfRing

TEST(PerfRing, CopiesEveryRange) {
  const Bytes memory = counted(64);
  std::uint64_t head = 0;
  std::uint64_t tail = 0;
  const PerfRing ring(memory, &head, &tail);
  for (std::uint64_t from = 0; from < 200; from += 7) {
    for (std::uint64_t bytes = 0; bytes <= memory.size(); ++bytes) {
      Bytes expected;
      for (std::uint64_t i = from; i < from + bytes; ++i) expected.push_back(memory[i % memory.size()]);
      ASSERT_EQ(ring.copy(from, from + bytes), expected) << from << ' ' << bytes;
    }
  }
}

TEST(PerfRing, DetectsImplausiblePositions) {
  const Bytes memory(64);
  std::uint64_t head = 0;
  std::uint64_t tail = 100;
  PerfRing ring(memory, &head, &tail);
  EXPECT_TRUE(ring.holds(100));
  EXPECT_TRUE(ring.holds(164));
  EXPECT_FALSE(ring.holds(165));
  EXPECT_FALSE(ring.holds(99));
  ring.release(164);
  EXPECT_EQ(tail, 164U);
}

// ---- unrolled()

TEST(PerfSnapshot, UnrollsRingAtPosition) {
  constexpr std::size_t kSize = 32;
  Bytes memory(kSize);
  Bytes all;
  bool lapped = false;
  for (std::size_t count = 0; count < 3 * kSize; ++count) {
    const Bytes found = unrolled(memory, all.size(), lapped);
    const std::size_t kept = std::min(all.size(), kSize);
    ASSERT_EQ(found, Bytes(all.end() - static_cast<std::ptrdiff_t>(kept), all.end())) << count;
    EXPECT_EQ(lapped, all.size() >= kSize);
    const std::uint8_t byte = static_cast<std::uint8_t>(1 + count);
    memory[all.size() % kSize] = byte;
    all.push_back(byte);
  }
}

TEST(PerfSnapshot, RemembersLap) {
  bool lapped = false;
  static_cast<void>(unrolled(counted(16), 5, lapped));
  EXPECT_TRUE(lapped);
  // The last bytes of a lap may be zeros.
  Bytes memory = counted(16);
  std::fill(memory.begin() + 8, memory.end(), std::uint8_t{0});
  EXPECT_EQ(unrolled(memory, 8, lapped).size(), 16U);
}

// ---- the clock

TEST(PerfClock, IsReadConsistently) {
  perf_event_mmap_page page{};
  page.time_mult = 5;
  page.time_shift = 10;
  page.time_zero = 77;
  EXPECT_FALSE(clock_of(page));
  page.cap_user_time_zero = 1;
  const auto clock = clock_of(page);
  ASSERT_TRUE(clock);
  EXPECT_TRUE(clock->perf_time_known);
  EXPECT_EQ(clock->time_mult, 5U);
  EXPECT_EQ(clock->time_shift, 10);
  EXPECT_EQ(clock->time_zero, 77U);
  page.lock = 1;  // the kernel never ends its update
  EXPECT_FALSE(clock_of(page));
  page.lock = 2;
  page.time_shift = 64;
  EXPECT_FALSE(clock_of(page));
  page.time_shift = 10;
  page.time_mult = 0;
  EXPECT_FALSE(clock_of(page));
}

// ---- a buffer

class PerfBufferBytes : public ::testing::Test {
 protected:
  PerfBufferBytes() : port_(kernel_), output_(writer(), 0, parser_) {}
  ~PerfBufferBytes() override { std::filesystem::remove(path_); }
  PerfBufferBytes(const PerfBufferBytes&) = delete;
  PerfBufferBytes& operator=(const PerfBufferBytes&) = delete;

  formats::PtkWriter writer() {
    auto out = formats::PtkWriter::create(path_);
    EXPECT_TRUE(out.ok());
    out.value().info({});
    return std::move(out.value());
  }

  PerfBuffer mapped(bool ring) {
    perf_event_attr attr{};
    attr.type = kPtType;  // and enabled
    event_ = port_.open(attr, -1, 0);
    int error = 0;
    auto out = PerfBuffer::map(port_, event_, -1, 0, {kPerfPage, 2 * kPerfPage, ring}, error);
    EXPECT_TRUE(out) << error;
    formats::perf::Attr records;
    records.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    records.flags = std::uint64_t{1} << formats::perf::kSampleIdAll;
    out->set_attr(records, true);
    out->set_stream(output_.stream({}));
    return std::move(*out);
  }

  FakeKernel kernel_;
  FakePerf port_;
  std::string path_ = "/tmp/ptkit-buffer-" + std::to_string(::getpid()) + "-" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".ptk";
  FileParser parser_;
  BundleOutput output_;
  int event_ = 0;
  std::vector<SystemRecord> records_;
  std::vector<FiredEvent> fired_;
};

TEST_F(PerfBufferBytes, SurvivesRandomRecords) {
  std::mt19937_64 random(7);
  PerfBuffer buffer = mapped(false);
  FakeKernel::Buffer& memory = kernel_.buffer(0);
  std::uint64_t head = 0;
  for (int round = 0; round < 3000; ++round) {
    for (std::size_t i = kPerfPage; i < memory.first.size(); ++i)
      memory.first[i] = random() % 3 == 0 ? static_cast<std::uint8_t>(random()) : 0;
    // Some headers are plausible.
    for (std::size_t at = kPerfPage; at + 8 <= memory.first.size();) {
      const std::size_t size = 8 + random() % 12 * 8;
      memory.first[at] = static_cast<std::uint8_t>(random() % 24);
      memory.first[at + 1] = memory.first[at + 2] = memory.first[at + 3] = 0;
      memory.first[at + 6] = static_cast<std::uint8_t>(size);
      memory.first[at + 7] = 0;
      at += size;
    }
    head += random() % (kPerfPage + 1) / 8 * 8;
    memory.page().data_head = head;
    ASSERT_FALSE(buffer.drain(output_, records_, fired_));
    EXPECT_EQ(memory.page().data_tail, head);
    for (const SystemRecord& record : records_) EXPECT_LE(record.text.size(), kPerfPage);
    records_.clear();
  }
  memory.page().data_head = head + 2 * kPerfPage;  // beyond the ring
  const std::uint64_t bad = buffer.counts().bad_records;
  ASSERT_FALSE(buffer.drain(output_, records_, fired_));
  EXPECT_EQ(buffer.counts().bad_records, bad + 1);
  EXPECT_TRUE(records_.empty());
}

TEST_F(PerfBufferBytes, FailsOnImplausibleAuxHead) {
  PerfBuffer buffer = mapped(false);
  kernel_.buffer(0).page().aux_head = 2 * kPerfPage + 1;
  const auto failure = buffer.drain(output_, records_, fired_);
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->detail.find("impossible positions"), std::string::npos);
}

// An AUX record may come before aux_head reaches the end of its data.
TEST_F(PerfBufferBytes, DelaysLossUntilItsOffset) {
  PerfBuffer buffer = mapped(false);
  kernel_.write(0, counted(100));
  kernel_.write(0, counted(100), PERF_AUX_FLAG_TRUNCATED);
  kernel_.buffer(0).page().aux_head = 150;
  ASSERT_FALSE(buffer.drain(output_, records_, fired_));
  kernel_.buffer(0).page().aux_head = 200;
  kernel_.write(0, counted(3, 50));
  ASSERT_FALSE(buffer.drain(output_, records_, fired_));
  ASSERT_TRUE(output_.finish().ok());
  const auto bundle = formats::open(path_, {});
  ASSERT_TRUE(bundle.ok());
  const trace::Stream& stream = bundle.value().streams[0];
  EXPECT_EQ(stream.data.size(), 203U);
  ASSERT_EQ(stream.losses.size(), 1U);
  EXPECT_EQ(stream.losses[0].offset, 200U);
}

TEST_F(PerfBufferBytes, ReadsKsymbols) {
  PerfBuffer buffer = mapped(false);
  Bytes body;
  FakeKernel::put(body, 0xffffffffc0001000, 8);
  FakeKernel::put(body, 64, 4);
  FakeKernel::put(body, 1, 2);
  FakeKernel::put(body, 0, 2);
  for (const char letter : std::string("bpf_prog")) body.push_back(static_cast<std::uint8_t>(letter));
  FakeKernel::put(body, 0, 8);
  kernel_.write_record(0, 17, 0, {5, 1, 1}, body);
  body[14] = 1;  // PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER
  kernel_.write_record(0, 17, 0, {6, 1, 1}, body);
  ASSERT_FALSE(buffer.drain(output_, records_, fired_));
  ASSERT_EQ(records_.size(), 1U);
  EXPECT_EQ(records_[0].kind, SystemRecord::Kind::KSYMBOL);
  EXPECT_EQ(records_[0].address, 0xffffffffc0001000U);
  EXPECT_EQ(records_[0].bytes, 64U);
  EXPECT_EQ(records_[0].text, "bpf_prog");
}

// The same scenario as in tests/unit/formats/perf_data/test_branches.cpp.
TEST(RunningThread, FindsOnlyThreadBetweenQueries) {
  struct Step {
    std::int64_t tid;
    std::uint64_t tsc;
    bool out;
  };
  RunningThread ran;
  for (const Step& one : std::vector<Step>{{20, 110, false},
                                           {20, 120, true},
                                           {20, 130, false},
                                           {20, 190, true},
                                           {0, 210, false},
                                           {21, 310, false},
                                           {21, 390, true},
                                           {20, 420, false},
                                           {21, 430, false},
                                           {21, 590, true}}) {
    ran.take({.tsc = one.tsc, .cpu = 0, .pid = one.tid, .tid = one.tid, .out = one.out});
  }
  std::vector<std::int64_t> tids;
  for (std::uint64_t tsc = 100; tsc <= 700; tsc += 100) {
    for (std::uint64_t on_the_way = tsc - 90; on_the_way < tsc; on_the_way += 30) ran.pass(on_the_way);
    const auto one = ran.only_one_until(tsc);
    tids.push_back(one ? one->tid : trace::kNoId);
  }
  const std::int64_t none = trace::kNoId;
  EXPECT_EQ(tids, (std::vector<std::int64_t>{none, 20, none, 21, none, 21, none}));
}

// ---- BtsBuffer

TEST(BtsBuffer, KeepsNoAuxRecordsOfRing) {
  BtsBuffer store(false, false, 4080);
  std::uint64_t tsc = 0;
  const auto go_on = [&](int count) {
    for (int i = 0; i < count; ++i, ++tsc) {
      const auto tid = static_cast<std::int32_t>(20 + i % 2);
      store.ran({.tsc = tsc, .cpu = 0, .pid = 20, .tid = tid, .out = false});
      store.add_ring_record({.begin = 24 * tsc, .tsc = tsc, .pid = 20, .tid = tid});
    }
  };
  go_on(1000);
  const std::size_t before = ::mallinfo2().uordblks;
  go_on(100'000);
  EXPECT_LT(::mallinfo2().uordblks, before + (std::size_t{64} << 10U));
  const auto chunks = store.chunks_of_snapshot(Bytes(240));
  ASSERT_EQ(chunks.size(), 2U);  // a chunk of both threads, and one branch of the last thread
  EXPECT_EQ(chunks[0].tid, -1);
  EXPECT_EQ(chunks[1].tid, 21);
}

}  // namespace
}  // namespace ptkit::capture::test
