// SAMPLE records: layouts, AUX samples, context switches by the tracepoint sched_switch.
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/perf_event/sample.h"
#include "formats/registry.h"
#include "unit/support/makers/perf_sample.h"
#include "unit/support/traces/perf_reading.h"
#include "unit/support/warned.h"

namespace ptkit::formats {
namespace {

using test::Attribute;
using test::Bytes;
using test::kEach;
using test::SampleId;

base::Bytes view(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
std::string text(base::Bytes bytes) { return {bytes.begin(), bytes.end()}; }

constexpr std::uint64_t bit(unsigned number) { return std::uint64_t{1} << number; }

// A field of a sample, and its bit in sample_type.
struct Field {
  unsigned sample_bit;
  std::string bytes;
};

// All fields, in the order of the record.
std::vector<Field> all_fields() {
  const auto words = [](std::initializer_list<std::uint64_t> list) {
    Bytes out;
    for (const std::uint64_t word : list) out.add(word);
    return out.str();
  };
  return {
      {16, words({77})},
      {0, words({0x401000})},
      {1, words({10 | 11ULL << 32U})},
      {2, words({500})},
      {3, words({0x402000})},
      {6, words({77})},
      {9, words({5})},
      {7, words({3})},
      {8, words({1})},
      {4, words({2, 100, 100, 7, 77, 0, 8, 78, 0})},  // a group of two counters
      {5, words({3, 1, 2, 3})},
      {10, Bytes().add(std::uint32_t{12}).raw("tracepoint..").str()},
      {11, words({2, 31, 0x1, 0x2, 0x3, 0x4, 0x5, 0x6, 9, 9})},
      {12, words({2, 1, 1, 1})},
      {13, words({16, 0, 0, 8})},
      {14, words({1})},
      {15, words({1})},
      {17, words({1})},
      {18, words({0})},  // PERF_SAMPLE_REGS_ABI_NONE, as in user mode
      {19, words({1})},
      {21, words({1})},
      {22, words({1})},
      {23, words({1})},
      {20, Bytes().add(std::uint64_t{8}).raw("PT bytes").str()},
  };
}

perf::Attr attr_of(std::uint64_t sample_type) {
  perf::Attr attr;
  attr.sample_type = sample_type;
  attr.read_format = 1 | 2 | 4 | 8 | 16;
  attr.branch_type = bit(3) | bit(17) | bit(19);
  attr.user_regs = 7;
  attr.interrupt_regs = 7;
  return attr;
}

void expect_fields(const std::vector<Field>& fields) {
  std::uint64_t type = 0;
  std::string body;
  for (const Field& field : fields) {
    type |= bit(field.sample_bit);
    body += field.bytes;
  }
  const auto sample = perf::parse_sample(attr_of(type), view(body));
  ASSERT_TRUE(sample);
  const auto has = [type](unsigned number) { return (type & bit(number)) != 0; };
  EXPECT_EQ(sample->ip, has(0) ? 0x401000U : 0U);
  EXPECT_EQ(sample->trailer.tid, has(1) ? 11 : -1);
  EXPECT_EQ(sample->trailer.time, has(2) ? 500U : 0U);
  EXPECT_EQ(sample->address, has(3) ? 0x402000U : 0U);
  EXPECT_EQ(sample->trailer.cpu, has(7) ? 3 : -1);
  EXPECT_EQ(text(sample->raw), has(10) ? "tracepoint.." : "");
  EXPECT_EQ(sample->branches.size(), has(11) ? 48U : 0U);
  EXPECT_EQ(text(sample->branches).substr(0, 1), has(11) ? "\x01" : "");
  EXPECT_EQ(text(sample->trace), has(20) ? "PT bytes" : "");
  for (std::size_t cut = 1; cut <= 8 && cut < body.size() && !has(20); ++cut) {
    EXPECT_FALSE(perf::parse_sample(attr_of(type), view(body).first(body.size() - cut)));
  }
}

TEST(PerfSample, ParsesEveryCombinationOfFields) {
  const std::vector<Field> all = all_fields();
  expect_fields(all);
  for (std::size_t absent = 0; absent < all.size(); ++absent) {
    SCOPED_TRACE(all[absent].sample_bit);
    std::vector<Field> fields = all;
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(absent));
    expect_fields(fields);
    expect_fields({all[absent]});
  }
}

TEST(PerfSample, ParsesVariantsOfFields) {
  const auto sample = [](perf::Attr attr, const std::string& body) {
    return perf::parse_sample(attr, view(body));
  };
  // Counters without group; weights as a structure; an empty stack; a branch stack without its index.
  perf::Attr attr = attr_of(bit(4) | bit(24) | bit(13) | bit(11) | bit(20));
  attr.read_format = 4;
  attr.branch_type = bit(3);
  const std::string body = Bytes()
                               .add(std::uint64_t{7}, std::uint64_t{77})  // value, id
                               .add(std::uint64_t{1}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3})
                               .add(std::uint64_t{0})  // stack
                               .add(std::uint64_t{9})  // weights
                               .add(std::uint64_t{2})  // trace
                               .raw("xyPADDED")
                               .str();
  const auto found = sample(attr, body);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->branches.size(), 24U);
  EXPECT_EQ(text(found->trace), "xy");
}

TEST(PerfSample, IgnoresAbsurdCounts) {
  for (const unsigned number : {4U, 5U, 10U, 11U, 13U}) {
    const std::string body(16, '\xff');
    EXPECT_FALSE(perf::parse_sample(attr_of(bit(number)), view(body))) << number;
  }
}

class PerfSamples : public test::PerfReading {};

constexpr std::uint64_t kWho = bit(1) | bit(2) | bit(7) | bit(16);
constexpr std::uint64_t kByThread = bit(1) | bit(2) | bit(16);

std::string sample(std::uint64_t id, const SampleId& task, const std::string& rest, bool with_cpu = true) {
  Bytes body;
  body.add(id, task.pid, task.tid, task.tsc / test::kTscPerNs);
  if (with_cpu) body.add(task.cpu, std::uint32_t{0});
  return test::record(9, 2, body.raw(rest).str());
}
std::string trace_field(const std::string& bytes) {
  return Bytes().add(static_cast<std::uint64_t>(bytes.size())).raw(bytes).str();
}

// A ring with a PSB every 64 bytes.
std::string ring(std::size_t size) {
  std::string out;
  while (out.size() < size) {
    for (int i = 0; i < 8; ++i) out += "\x02\x82";
    for (int i = 0; i < 48; ++i) out += static_cast<char>(1 + (out.size() * 7 + out.size() / 64) % 199);
  }
  return out.substr(0, size);
}

TEST_F(PerfSamples, AuxDataBecomesStreamOfCpu) {
  const std::string whole = ring(800);
  const std::vector<Attribute> attributes{{.sample_type = kWho},
                                          {.type = 0, .sample_type = kWho | bit(20), .id = 78}};
  const auto aux_data = [&](std::uint32_t cpu, std::size_t begin, std::size_t end) {
    return sample(78, {.cpu = cpu}, trace_field(whole.substr(begin, end - begin)));
  };
  const auto bundle = read(test::perf_file(attributes,
                                           test::auxtrace_info() + aux_data(0, 0, 200) + aux_data(1, 8, 208) +
                                               aux_data(0, 104, 304) + aux_data(0, 504, 704) +
                                               test::switched({.tid = 12, .tsc = 40, .cpu = 1}, false),
                                           {{9, test::kCpuid}}));
  ASSERT_EQ(bundle.streams.size(), 2U);
  const trace::Stream& stream = bundle.streams[0];
  EXPECT_EQ(stream.cpu, 0);
  EXPECT_EQ(text(stream.data.bytes()), whole.substr(0, 304) + whole.substr(504, 200));
  ASSERT_EQ(stream.losses.size(), 1U);
  EXPECT_EQ(stream.losses[0].offset, 304U);
  EXPECT_EQ(stream.losses[0].cause, base::Status::RING_WRAPPED);
  EXPECT_EQ(text(bundle.streams[1].data.bytes()), whole.substr(8, 200));
  ASSERT_EQ(bundle.streams[1].switches.size(), 1U);
  EXPECT_EQ(bundle.streams[1].switches[0].tid, 12);
}

// Samples do not have their position in the ring.
TEST_F(PerfSamples, GapsPrecedeOldestByteOfSample) {
  const std::string whole = ring(800);
  const auto aux_data = [&](std::size_t begin, std::size_t end) {
    return sample(78, {}, trace_field(whole.substr(begin, end - begin)));
  };
  const auto aux_record = [](std::uint64_t until, std::uint64_t flags) {
    return test::aux({}, until, 4096, flags);
  };
  const auto bundle = read(test::perf_file(
      {{.sample_type = kWho}, {.type = 0, .sample_type = kWho | bit(20), .id = 78}},
      test::auxtrace_info() + aux_record(100, 2) + aux_data(0, 200) + aux_record(220, 2 | 4) +
          aux_record(240, 2 | 8) + aux_data(104, 304) + aux_record(320, 2) + aux_data(504, 704),
      {{9, test::kCpuid}}));
  std::vector<std::pair<std::uint64_t, base::Status>> losses;
  for (const trace::KnownLoss& loss : bundle.streams.at(0).losses)
    losses.emplace_back(loss.offset, loss.cause);
  const std::vector<std::pair<std::uint64_t, base::Status>> expected{{200, base::Status::NOT_TRACED},
                                                                     {304, base::Status::RING_WRAPPED}};
  EXPECT_EQ(losses, expected);
}

TEST_F(PerfSamples, AuxDataBecomesStreamOfThread) {
  const std::vector<Attribute> attributes{{.sample_type = kByThread | bit(20), .id = 78}};
  const auto aux_data = [&](std::uint32_t tid) {
    return sample(78, {.pid = 10, .tid = tid}, trace_field(ring(100 + tid)), false);
  };
  const auto bundle =
      read(test::perf_file(attributes, test::auxtrace_info() + aux_data(12) + aux_data(11), {}));
  ASSERT_EQ(bundle.streams.size(), 2U);
  EXPECT_EQ(bundle.streams[0].tid, 11);
  EXPECT_EQ(bundle.streams[0].cpu, trace::kNoId);
  EXPECT_EQ(bundle.streams[0].pid, 10);
  EXPECT_EQ(bundle.spaces.at(bundle.streams[0].space).pid, 10);
  EXPECT_EQ(text(bundle.streams[1].data.bytes()), ring(112));
}

TEST_F(PerfSamples, CountsOtherSamples) {
  const auto bundle =
      read(test::perf_file(test::auxtrace_info() + sample(77, {}, "") + sample(77, {}, "") +
                           test::record(9, 2, "") + test::auxtrace(0, kEach, 0, 0, test::small_stream())));
  EXPECT_NE(bundle.metadata.find("\"samples\":2"), std::string::npos);
  EXPECT_TRUE(warns(bundle, WarningCode::PERF_RECORDS_SHORT, 1));
}

const std::string kTracingData =
    "\x17\x08\x44tracing0.6\n...name: sched_wakeup\nID: 315\nformat:\n"
    "\tfield:pid_t next_pid;\toffset:4;\tsize:4;\tsigned:1;\n\nprint fmt: \"x\"\n"
    "name: sched_switch\nID: 316\nformat:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"
    "\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
    "\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n"
    "\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\nprint fmt: \"x\"\n"
    "name: sys_enter\nID: 20\n";

TEST(PerfTracepoint, ReadsOffsetsFromFormat) {
  const auto found = perf::find_sched_switch(view(kTracingData));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->event, 316U);
  EXPECT_EQ(found->next_tid_at, 56U);
  std::string other = kTracingData;
  other.replace(other.find("offset:56"), 9, "offset:40");
  EXPECT_EQ(perf::find_sched_switch(view(other))->next_tid_at, 40U);
  EXPECT_FALSE(perf::find_sched_switch({}));
  EXPECT_FALSE(perf::find_sched_switch(view(kTracingData.substr(0, kTracingData.find("ID: 316")))));
  EXPECT_FALSE(perf::find_sched_switch(view(kTracingData.substr(0, kTracingData.find("offset:56")))));
}

TEST_F(PerfSamples, SchedSwitchGivesRunningThread) {
  const std::vector<Attribute> attributes{
      {.sample_type = kWho | bit(10)}, {.type = 2, .config = 316, .sample_type = kWho | bit(10), .id = 78}};
  const auto switched = [](std::uint64_t tsc, std::uint32_t next) {
    std::string raw(60, '\0');
    raw.replace(56, 4, Bytes().add(next).str());
    return sample(78, {.tsc = tsc, .cpu = 1}, Bytes().add(std::uint32_t{60}).raw(raw).str());
  };
  const auto bundle = read(test::perf_file(
      attributes,
      test::auxtrace_info() + test::comm({.pid = 20, .tid = 21}, "a", false) + switched(100, 21) +
          switched(200, 0) + switched(300, 99) + test::auxtrace(0, kEach, 1, 0, test::small_stream()),
      {{1, kTracingData}}));
  ASSERT_EQ(bundle.streams.size(), 1U);
  const auto& switches = bundle.streams[0].switches;
  ASSERT_EQ(switches.size(), 3U);
  EXPECT_EQ(switches[0].tsc, 100U);
  EXPECT_EQ(switches[0].tid, 21);
  EXPECT_EQ(switches[0].pid, 20);
  EXPECT_EQ(bundle.spaces.at(switches[0].space).pid, 20);
  EXPECT_EQ(switches[1].tid, trace::kNoId);
  EXPECT_EQ(switches[2].tid, 99);
  EXPECT_EQ(switches[2].pid, trace::kNoId);
}

}  // namespace
}  // namespace ptkit::formats
