#include <gtest/gtest.h>

#include "capture/windows/session.h"
#include "code/image/files/imports.h"
#include "formats/registry.h"
#include "trace/branch_record.h"
#include "unit/capture/windows/fake_device.h"
#include "unit/capture/windows/fake_events.h"
#include "unit/support/makers/pe_memory.h"
#include "unit/support/scratch.h"

namespace ptkit::capture {
namespace {

using namespace test;

constexpr std::uint64_t kBuffer = 65536;
constexpr int kPid = 4711;
constexpr const char16_t* kProgram = u"\\??\\C:\\a.exe";
constexpr std::uint64_t kImageBytes = 0x5000;  // of small_pe()

class WindowsSessionTest : public testing::Test {
 protected:
  WindowsSessionTest() {
    RecordOptions& record = options_.record;
    record.argv = {"a.exe"};
    record.output = scratch_.at("trace.ptk");
    record.timing.emplace();
    record.mtc_period = 3;
    record.buffer = kBuffer;
    images_.files["\\??\\C:\\a.exe"] = ptkit::test::small_pe();
  }

  WindowsSession make() { return {device_, images_, events_, options_, {"Windows 10", {2}}}; }

  static void begin(WindowsSession& session, int pid = kPid) {
    const auto failure = session.prepare();
    ASSERT_FALSE(failure) << failure->detail;
    const auto refused = session.begin(pid, {1, 2, 3});
    ASSERT_FALSE(refused) << refused->detail;
  }

  static void drain(WindowsSession& session) {
    const auto failure = session.drain();
    ASSERT_FALSE(failure) << failure->detail;
  }

  trace::TraceBundle end(WindowsSession& session, std::optional<int> status = 0) {
    const auto failure = session.stop({4, 5, 6});
    EXPECT_FALSE(failure) << failure->detail;
    const auto result = session.finish(status);
    EXPECT_TRUE(result.ok()) << result.failure().detail;
    auto bundle = formats::open(options_.record.output, {});
    EXPECT_TRUE(bundle.ok());
    return bundle.ok() ? std::move(bundle.value()) : trace::TraceBundle();
  }

  static std::vector<std::uint8_t> data(const trace::Stream& stream) {
    const base::Bytes bytes = stream.data.bytes();
    return {bytes.begin(), bytes.end()};
  }

  // The region with bytes that begins there.
  static const trace::CodeRegion* code_at(const trace::TraceBundle& bundle, std::uint64_t address) {
    const auto found = std::find_if(bundle.code.begin(), bundle.code.end(), [&](const auto& region) {
      return region.address == address && region.bytes.size() != 0;
    });
    return found == bundle.code.end() ? nullptr : &*found;
  }

  void program_is_mapped(std::uint64_t address, std::uint64_t tsc = 100, std::uint32_t flags = 0) {
    append_image(device_.sideband, tsc, kPid, address, kImageBytes, flags, kProgram);
  }

  static bool warns(const trace::TraceBundle& bundle, const std::string& words) {
    return std::any_of(bundle.warnings.begin(), bundle.warnings.end(),
                       [&](const auto& one) { return one.text().find(words) != std::string::npos; });
  }

  std::string refused(const char* what) {
    WindowsSession session = make();
    const auto failure = session.prepare();
    EXPECT_TRUE(failure) << what;
    return failure ? failure->detail : std::string();
  }

  formats::test::Scratch scratch_;
  FakeWindows device_;
  FakeImages images_;
  FakeEvents events_;
  WindowsOptions options_;
};

TEST_F(WindowsSessionTest, WritesWhatBothProcessorsTraced) {
  WindowsSession session = make();
  begin(session);
  EXPECT_EQ(device_.config.config.process, kPid);
  EXPECT_EQ(device_.config.config.target, std::uint32_t{PTKIT_TARGET_ALL});
  const auto first = bytes_from(5000, 1);
  const auto second = bytes_from(300, 9);
  device_.write(0, first);
  device_.write(1, second);
  drain(session);
  EXPECT_EQ(device_.cpus[0].status.tail, first.size());
  const trace::TraceBundle bundle = end(session);
  EXPECT_FALSE(warns(bundle, "cannot follow a process to its children"));
  ASSERT_EQ(bundle.streams.size(), 2U);
  EXPECT_EQ(data(bundle.streams[0]), first);
  EXPECT_EQ(data(bundle.streams[1]), second);
  EXPECT_EQ(bundle.streams[1].cpu, 1);
  EXPECT_EQ(bundle.streams[1].pid, kPid);
}

// The public driver of old cut its last buffer at the first run of zeros.
TEST_F(WindowsSessionTest, KeepsZerosAndTheLastBytes) {
  WindowsSession session = make();
  begin(session);
  std::vector<std::uint8_t> all(9000, 0);
  all.back() = 7;
  device_.write(0, all);
  drain(session);
  const std::vector<std::uint8_t> last(4097, 0);
  device_.on_stop = [&] { device_.write(0, last); };
  all.insert(all.end(), last.begin(), last.end());
  EXPECT_EQ(data(end(session).streams[0]), all);
}

TEST_F(WindowsSessionTest, ReadsAcrossTheEndOfTheBuffer) {
  WindowsSession session = make();
  begin(session);
  std::vector<std::uint8_t> all;
  for (std::uint8_t i = 0; i < 5; ++i) {
    const auto more = bytes_from(kBuffer / 2 + 1001, i);
    device_.write(0, more);
    drain(session);
    all.insert(all.end(), more.begin(), more.end());
  }
  const trace::TraceBundle bundle = end(session);
  EXPECT_EQ(data(bundle.streams[0]), all);
  EXPECT_TRUE(bundle.streams[0].losses.empty());
}

TEST_F(WindowsSessionTest, RecordsALossWhereTheBufferWasFull) {
  WindowsSession session = make();
  begin(session);
  device_.write(0, bytes_from(kBuffer + 10, 3));
  drain(session);
  device_.write(0, bytes_from(16, 5));
  const trace::TraceBundle bundle = end(session);
  ASSERT_EQ(bundle.streams[0].losses.size(), 1U);
  EXPECT_EQ(bundle.streams[0].losses[0].offset, kBuffer);
  EXPECT_EQ(bundle.streams[0].losses[0].cause, base::Status::BUFFER_FULL);
  EXPECT_EQ(bundle.streams[0].data.size(), kBuffer + 16);
}

TEST_F(WindowsSessionTest, KeepsTheNewestBytesOfARing) {
  options_.record.ring = kBuffer;
  WindowsSession session = make();
  begin(session);
  device_.write(0, bytes_from(1000, 1));
  const auto failure = session.snapshot();
  ASSERT_FALSE(failure) << failure->detail;
  device_.write(0, bytes_from(500, 77));
  const trace::TraceBundle bundle = end(session);
  auto expected = bytes_from(1000, 1);
  const auto second = bytes_from(500, 77);
  expected.insert(expected.end(), second.begin(), second.end());
  EXPECT_EQ(data(bundle.streams[0]), expected);
}

TEST_F(WindowsSessionTest, SaysThatARingWasOverwritten) {
  options_.record.ring = kBuffer;
  WindowsSession session = make();
  begin(session);
  device_.write(0, bytes_from(3 * kBuffer + 5, 1));
  const trace::TraceBundle bundle = end(session);
  EXPECT_EQ(bundle.streams[0].data.size(), kBuffer);
  ASSERT_EQ(bundle.streams[0].losses.size(), 1U);
  EXPECT_EQ(bundle.streams[0].losses[0].cause, base::Status::RING_WRAPPED);
}

TEST_F(WindowsSessionTest, SavesCodeAndNamesOfImages) {
  WindowsSession session = make();
  begin(session);
  append_space(device_.sideband, 90, kPid, 0x1000, 0x2000);
  program_is_mapped(0x140000000);
  drain(session);
  const trace::TraceBundle bundle = end(session);
  ASSERT_EQ(bundle.files.size(), 1U);
  EXPECT_EQ(bundle.files[0].path, "C:\\a.exe");
  EXPECT_EQ(bundle.files[0].build_id, "3f2504e04f8911d39a0c0305e82c3301-1a");
  EXPECT_FALSE(bundle.files[0].symbols.empty());
  ASSERT_EQ(bundle.code.size(), 1U);
  const trace::CodeRegion& code = bundle.code[0];
  EXPECT_EQ(code.address, 0x140000000 + ptkit::test::kTextAddress);
  EXPECT_EQ(code.file_offset, ptkit::test::kTextOffset);
  EXPECT_EQ(code.tsc_from, trace::kTscMin);
  ASSERT_GT(code.bytes.size(), 0U);
  EXPECT_EQ(code.bytes.bytes()[0], 0xc3);
  const trace::Space& space = bundle.spaces[code.space];
  EXPECT_EQ(space.pid, kPid);
  EXPECT_EQ(space.cr3, 0x1000U);
  EXPECT_EQ(space.user_cr3, 0x2000U);
  EXPECT_EQ(bundle.streams[0].space, code.space);
}

TEST_F(WindowsSessionTest, BeginsAnImageWhereItReplacesAnother) {
  WindowsSession session = make();
  begin(session);
  images_.files["\\??\\C:\\late.dll"] = ptkit::test::small_pe();
  program_is_mapped(0x10000);
  append_image(device_.sideband, 500, kPid, 0x12000, kImageBytes, 0, u"\\??\\C:\\late.dll");
  const trace::TraceBundle bundle = end(session);
  ASSERT_EQ(bundle.code.size(), 2U);
  EXPECT_EQ(bundle.code[0].tsc_from, trace::kTscMin);
  EXPECT_EQ(bundle.code[1].tsc_from, 500U);
}

TEST_F(WindowsSessionTest, SavesTheBytesOfAFileOnce) {
  options_.record.argv.clear();
  options_.record.cpus.all = true;
  WindowsSession session = make();
  begin(session, 0);
  program_is_mapped(0x10000);
  append_image(device_.sideband, 101, kPid + 1, 0x90000, kImageBytes, 0, kProgram);
  const trace::TraceBundle bundle = end(session, std::nullopt);
  EXPECT_EQ(images_.opened, 1);
  const trace::CodeRegion* const first = code_at(bundle, 0x10000 + ptkit::test::kTextAddress);
  const trace::CodeRegion* const second = code_at(bundle, 0x90000 + ptkit::test::kTextAddress);
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_NE(first->space, second->space);
  EXPECT_EQ(second->bytes.bytes()[0], 0xc3);  // those of the other process
}

TEST_F(WindowsSessionTest, SavesImportSlots) {
  ptkit::test::ByteVector file = ptkit::test::small_pe();
  ptkit::test::put_imports(file, true);
  images_.files["\\??\\C:\\a.exe"] = file;
  WindowsSession session = make();
  begin(session);
  program_is_mapped(0x10000);
  const trace::TraceBundle bundle = end(session);
  ASSERT_FALSE(bundle.files.empty());
  EXPECT_EQ(bundle.files[0].imports, code::image::Imports(base::Bytes(file)).encode());
  EXPECT_FALSE(bundle.files[0].imports.empty());
}

TEST_F(WindowsSessionTest, SavesCodeAsItsLoaderMovedIt) {
  constexpr std::uint64_t kFirst = 0x10000;
  constexpr std::uint64_t kSecond = 0x90000;
  ptkit::test::ByteVector file = ptkit::test::small_pe();
  ptkit::test::put(file, ptkit::test::kTextOffset + 0x10, ptkit::test::kPeBase + 0x2345, 8);
  ptkit::test::put_relocations(file, true, ptkit::test::kTextAddress, {10U << 12U | 0x10U});
  images_.files["\\??\\C:\\a.exe"] = file;
  options_.record.argv.clear();
  options_.record.cpus.all = true;
  WindowsSession session = make();
  begin(session, 0);
  program_is_mapped(kFirst);
  append_image(device_.sideband, 101, kPid + 1, kSecond, kImageBytes, 0, kProgram);
  append_image(device_.sideband, 102, kPid + 2, kFirst, kImageBytes, 0, kProgram);
  const trace::TraceBundle bundle = end(session, std::nullopt);
  std::vector<std::uint64_t> bases;
  for (const trace::CodeRegion& region : bundle.code) {
    if (region.bytes.size() == 0) continue;
    const std::uint64_t base = region.address - ptkit::test::kTextAddress;
    EXPECT_EQ(base::load_le<8>(region.bytes.bytes().data() + 0x10), base + 0x2345);
    bases.push_back(base);
  }
  std::ranges::sort(bases);
  EXPECT_EQ(bases, (std::vector{kFirst, kFirst, kSecond}));
}

TEST_F(WindowsSessionTest, TakesMemoryWhereTheFileWasReplaced) {
  WindowsSession session = make();
  begin(session);
  images_.memories[0x20000] = std::vector<std::uint8_t>(kImageBytes + 0x1000, 0x90);
  append_image(device_.sideband, 5, kPid, 0x20000, kImageBytes + 0x1000, 0, kProgram);
  append_image(device_.sideband, 6, kPid, 0x80000, kImageBytes, 0, u"\\??\\C:\\gone.dll");
  const trace::TraceBundle bundle = end(session);
  const trace::CodeRegion* const replaced = code_at(bundle, 0x20000);
  ASSERT_NE(replaced, nullptr);
  EXPECT_EQ(replaced->bytes.size(), kImageBytes + 0x1000);
  EXPECT_EQ(code_at(bundle, 0x80000), nullptr);
  EXPECT_TRUE(warns(bundle, "gone.dll"));
}

TEST_F(WindowsSessionTest, WritesTheThreadsOfEachCpu) {
  WindowsSession session = make();
  begin(session);
  EXPECT_TRUE(events_.started);
  ptkit_record_fork fork{};
  append_record(device_.sideband, fork, PTKIT_RECORD_FORK, 50, kPid, 18);
  events_.events = {thread_event(kPid, 17, 40), switch_event(0, 100, 0, 17)};
  drain(session);
  events_.at_stop = {switch_event(1, 200, 17, 18)};
  const trace::TraceBundle bundle = end(session);
  EXPECT_FALSE(events_.started);
  ASSERT_EQ(bundle.streams[0].switches.size(), 1U);
  EXPECT_EQ(bundle.streams[0].switches[0].tsc, 100U);
  EXPECT_EQ(bundle.streams[0].switches[0].tid, 17);
  EXPECT_EQ(bundle.streams[0].switches[0].pid, kPid);
  EXPECT_EQ(bundle.streams[0].switches[0].space, bundle.streams[0].space);
  ASSERT_EQ(bundle.streams[1].switches.size(), 2U);
  EXPECT_EQ(bundle.streams[1].switches[0].tid, 17);
  EXPECT_EQ(bundle.streams[1].switches[1].tid, 18);
  EXPECT_FALSE(warns(bundle, "hreads"));
}

TEST_F(WindowsSessionTest, EndsTheCodeOfAnUnloadedImage) {
  WindowsSession session = make();
  begin(session);
  images_.files["\\??\\C:\\late.dll"] = ptkit::test::small_pe();
  program_is_mapped(0x10000);
  append_image(device_.sideband, 500, kPid, 0x10000, kImageBytes, 0, u"\\??\\C:\\late.dll");
  drain(session);
  events_.at_stop = {unload_event(kPid, 0x10000, kImageBytes, 400),
                     unload_event(kPid + 1, 0x10000, kImageBytes, 450)};
  const trace::TraceBundle bundle = end(session);
  ASSERT_EQ(bundle.code.size(), 2U);
  EXPECT_EQ(bundle.code[0].tsc_from, trace::kTscMin);
  EXPECT_EQ(bundle.code[0].tsc_to, 400U);
  EXPECT_EQ(bundle.code[1].tsc_from, 500U);
  EXPECT_EQ(bundle.code[1].tsc_to, trace::kTscMax);
}

TEST_F(WindowsSessionTest, EndsTheCodeOfAnUnloadedDriver) {
  options_.record.argv.clear();
  options_.record.cpus.all = options_.record.levels.kernel = true;
  WindowsSession session = make();
  begin(session, 0);
  append_image(device_.sideband, 1, 0, 0xfffff80000000000, kImageBytes, PTKIT_IMAGE_KERNEL, kProgram);
  events_.events = {unload_event(4, 0xfffff80000000000, kImageBytes, 300)};
  const trace::TraceBundle bundle = end(session, std::nullopt);
  ASSERT_EQ(bundle.code.size(), 1U);
  EXPECT_EQ(bundle.code[0].tsc_to, 300U);
}

TEST_F(WindowsSessionTest, RecordsWithoutEventsAndSaysWhy) {
  events_.refusal = base::Failure{base::Status::UNSUPPORTED, 0, "ETW has no free session."};
  WindowsSession session = make();
  begin(session);
  const trace::TraceBundle bundle = end(session);
  EXPECT_TRUE(warns(bundle, "Threads are not separated"));
  EXPECT_TRUE(warns(bundle, "ETW has no free session."));
  EXPECT_TRUE(bundle.streams[0].switches.empty());
}

TEST_F(WindowsSessionTest, StartsNoEventsThatAreOfNoUse) {
  options_.record.timing = no_names<TimingPackets>();
  WindowsSession without_time = make();
  begin(without_time);
  EXPECT_FALSE(events_.started);
  EXPECT_TRUE(warns(end(without_time), "without TSC packets"));
  options_.record.timing->tsc = true;
  options_.switches = false;
  WindowsSession unwanted = make();
  begin(unwanted);
  EXPECT_FALSE(events_.started);
  EXPECT_TRUE(warns(end(unwanted), "--no-switches"));
}

TEST_F(WindowsSessionTest, SaysWhatEventsWereLost) {
  WindowsSession session = make();
  begin(session);
  events_.lost = {3, 1, 2, true};
  events_.events = {thread_event(kPid, 17, 1), switch_event(0, 100, 0, 17), switch_event(0, 200, 18, 17)};
  const trace::TraceBundle bundle = end(session);
  EXPECT_TRUE(warns(bundle, "ETW lost 3 events and 1 buffer:"));
  EXPECT_TRUE(warns(bundle, "2 events of ETW have a layout"));
  EXPECT_TRUE(warns(bundle, "before the recording ended"));
  EXPECT_TRUE(warns(bundle, "lack 1 context switch:"));
}

TEST_F(WindowsSessionTest, LeavesOutEventsOfAnotherClock) {
  WindowsSession session = make();
  begin(session);
  constexpr std::uint64_t kHours = std::uint64_t{3'000'000'000} * 36000;  // of the TSC since Windows began
  append_space(device_.sideband, kHours, kPid, 0x1000, 0x2000);
  drain(session);
  events_.events = {thread_event(kPid, 17, kHours), thread_event(kPid, 18, kHours),
                    switch_event(0, kHours / 300, 0, 17),                             // 10 MHz
                    switch_event(0, std::uint64_t{133'000'000'000'000'000}, 17, 18),  // since 1601
                    switch_event(1, kHours + 1000, 0, 18)};
  const trace::TraceBundle bundle = end(session);
  EXPECT_TRUE(bundle.streams[0].switches.empty());
  ASSERT_EQ(bundle.streams[1].switches.size(), 1U);
  EXPECT_EQ(bundle.streams[1].switches[0].tid, 18);
  EXPECT_TRUE(warns(bundle, "2 events of ETW had times of another clock"));
}

TEST_F(WindowsSessionTest, SeparatesProcessesOfUserCodeByEvents) {
  options_.record.argv.clear();
  options_.record.cpus.all = true;
  WindowsSession session = make();
  begin(session, 0);
  events_.events = {thread_event(kPid, 17, 1), thread_event(99, 98, 1), switch_event(0, 100, 98, 17)};
  const trace::TraceBundle bundle = end(session, std::nullopt);
  ASSERT_EQ(bundle.streams[0].switches.size(), 2U);
  EXPECT_EQ(bundle.spaces[bundle.streams[0].switches[0].space].pid, 99);
  EXPECT_EQ(bundle.spaces[bundle.streams[0].switches[1].space].pid, kPid);
  EXPECT_FALSE(warns(bundle, "Processes are not separated"));
}

TEST_F(WindowsSessionTest, TracesADriverByItsName) {
  options_.record.argv.clear();
  options_.record.cpus.all = options_.record.levels.kernel = true;
  options_.record.levels.user = false;
  options_.module = "ntfs.sys";
  WindowsSession session = make();
  begin(session, 0);
  EXPECT_STREQ(device_.config.module, "ntfs.sys");
  append_image(device_.sideband, 1, 0, 0xfffff80000000000, kImageBytes,
               PTKIT_IMAGE_KERNEL | PTKIT_IMAGE_BEFORE, kProgram);
  const trace::TraceBundle bundle = end(session, std::nullopt);
  EXPECT_EQ(bundle.configuration.ranges[0].kind, trace::RangeKind::FILTER);
  EXPECT_EQ(bundle.configuration.ranges[0].first, 0xfffff80000000000U);
  EXPECT_EQ(bundle.configuration.ranges[0].last, 0xfffff80000004fffU);
  EXPECT_NE(bundle.configuration.ranges[1].kind, trace::RangeKind::FILTER);
  ASSERT_EQ(bundle.code.size(), 1U);
  EXPECT_EQ(bundle.code[0].space, trace::kAnySpace);
}

// Two branches from TSC 1000 to 2000, and one until 3000, when another process runs.
std::vector<std::uint8_t> marked_branches() {
  std::vector<std::uint8_t> bytes;
  const auto word = [&](std::uint64_t value) {
    for (unsigned i = 0; i < 8; ++i) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  };
  const auto mark = [&](int pid, int tid, std::uint64_t tsc) {
    const ptkit_branch_mark one{0, pid, tid, tsc};
    const base::Bytes raw = bytes_of(one);
    bytes.insert(bytes.end(), raw.begin(), raw.end());
  };
  const auto branch = [&](std::uint64_t from, std::uint64_t to) {
    for (const std::uint64_t one : {from, to, std::uint64_t{0}}) word(one);
  };
  mark(kPid, 17, 1000);
  branch(0x401000, 0x402000);
  branch(0x402010, 0x403000);
  mark(~kPid, ~17, 2000);
  mark(kPid, 17, 2001);
  branch(0x403010, 0x404000);
  mark(~99, ~98, 3000);
  return bytes;
}

TEST_F(WindowsSessionTest, GivesBranchesTheProcessOfBothMarks) {
  options_.record.bts = true;
  events_.refusal = base::Failure{base::Status::UNSUPPORTED, 0, "ETW has no free session."};
  WindowsSession session = make();
  begin(session);
  EXPECT_EQ(device_.config.config.output, std::uint32_t{PTKIT_OUTPUT_BTS});
  EXPECT_EQ(device_.config.config.process, 0);  // branches are not chosen by CR3
  device_.write(1, marked_branches());
  drain(session);
  const trace::TraceBundle bundle = end(session);
  const trace::Stream& stream = bundle.streams[1];
  EXPECT_EQ(stream.kind, trace::StreamKind::BRANCH_RECORDS);
  EXPECT_EQ(stream.data.size(), 3 * sizeof(trace::BranchRecord));
  ASSERT_EQ(stream.switches.size(), 2U);
  EXPECT_EQ(stream.switches[0].tid, trace::kNoId);
  EXPECT_EQ(stream.switches[0].pid, kPid);
  EXPECT_EQ(stream.switches[0].tsc, 1000U);
  EXPECT_EQ(bundle.spaces[stream.switches[0].space].pid, kPid);
  EXPECT_EQ(stream.switches[1].pid, trace::kNoId);
  EXPECT_EQ(stream.switches[1].offset, 2 * sizeof(trace::BranchRecord));
}

TEST_F(WindowsSessionTest, GivesBranchesTheThreadThatRanBetweenTheirMarks) {
  options_.record.bts = true;
  WindowsSession session = make();
  begin(session);
  events_.events = {thread_event(kPid, 17, 10), thread_event(99, 98, 10), switch_event(1, 900, 0, 17)};
  device_.write(1, marked_branches());
  drain(session);
  drain(session);  // no event is later than a mark
  events_.at_stop = {switch_event(1, 2500, 17, 98)};
  const trace::TraceBundle bundle = end(session);
  const trace::Stream& stream = bundle.streams[1];
  ASSERT_EQ(stream.switches.size(), 2U);
  EXPECT_EQ(stream.switches[0].tsc, 1000U);
  EXPECT_EQ(stream.switches[0].tid, 17);
  EXPECT_EQ(bundle.spaces[stream.switches[0].space].pid, kPid);
  EXPECT_EQ(stream.switches[1].pid, trace::kNoId);
  EXPECT_EQ(stream.switches[1].tid, trace::kNoId);
  EXPECT_EQ(stream.switches[1].offset, 2 * sizeof(trace::BranchRecord));
}

TEST_F(WindowsSessionTest, ChoosesProcessorsOfTheSecondGroup) {
  options_.record.argv.clear();
  options_.record.cpus.numbers = {0, 1};
  WindowsSession session{device_, images_, events_, options_, {"Windows 10", {1, 1}}};
  begin(session, 0);
  EXPECT_EQ(device_.config.config.target, std::uint32_t{PTKIT_TARGET_AFFINITY});
  EXPECT_EQ(device_.config.affinity[0], 1U);
  EXPECT_EQ(device_.config.affinity[1], 1U);
}

TEST_F(WindowsSessionTest, SaysWhyNothingCanBeTraced) {
  device_.query.reason = PTKIT_REASON_VBS;
  EXPECT_NE(refused("VBS").find("memory integrity"), std::string::npos);
  device_.query.reason = 0;
  device_.query.query.abi = PTKIT_ABI + 1;
  EXPECT_NE(refused("ABI").find("install the driver"), std::string::npos);
}

TEST_F(WindowsSessionTest, NamesTheOptionThatTheDriverRefuses) {
  device_.refusals[PTKIT_WINDOWS_CONFIGURE] = {PTKIT_WINDOWS_CONFIGURE, PTKIT_REASON_UNSUPPORTED,
                                               offsetof(ptkit_config, mtc_freq), 0};
  WindowsSession session = make();
  ASSERT_FALSE(session.prepare());
  const auto failure = session.begin(kPid, {});
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->detail.find("--mtc-period"), std::string::npos) << failure->detail;
  EXPECT_FALSE(session.began());
}

TEST_F(WindowsSessionTest, NamesTheProcessorOfAnotherTracer) {
  device_.refusals[PTKIT_WINDOWS_START] = {PTKIT_WINDOWS_START, PTKIT_REASON_OWNER, 0, 1};
  WindowsSession session = make();
  ASSERT_FALSE(session.prepare());
  const auto failure = session.begin(kPid, {});
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->detail.find("CPU 1: another tracer"), std::string::npos) << failure->detail;
}

TEST_F(WindowsSessionTest, RefusesImpossibleCounts) {
  WindowsSession session = make();
  begin(session);
  device_.cpus[0].status.head = kBuffer + 1;
  const auto failure = session.drain();
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->detail.find("CPU 0"), std::string::npos);
}

TEST_F(WindowsSessionTest, RefusesMoreRangesThanTheProcessorHas) {
  options_.record.levels.kernel = true;
  options_.record.cpus.all = true;
  options_.module = "ntfs.sys";
  options_.record.filters.resize(4);
  EXPECT_NE(refused("ranges").find("5 address ranges"), std::string::npos);
}

}  // namespace
}  // namespace ptkit::capture
