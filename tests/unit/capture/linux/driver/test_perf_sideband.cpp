// Mappings and names by perf's dummy events, beside the driver's own records.
#include <set>

#include "capture/linux/process/tsc_clock.h"
#include "recording.h"
#include "unit/capture/linux/perf/record_bodies.h"

namespace ptkit::capture::test {
namespace {

namespace perf = formats::perf;
using trace::SidebandKind;

Bytes name(int pid, const std::string& text) {
  Bytes out = ids({pid, pid});
  out.insert(out.end(), text.begin(), text.end());
  out.push_back(0);
  return out;
}

class DriverPerfSideband : public DriverRecording {
 protected:
  // A record of the driver, of a thread that is alone in its process.
  template <typename Record>
  static Record driver_record(std::uint16_t type, std::uint64_t tsc, std::int32_t pid) {
    Record out{};
    auto& head = reinterpret_cast<ptkit_record&>(out);
    head.type = type;
    head.tsc = tsc;
    head.pid = head.tid = pid;
    return out;
  }
  void space(std::uint32_t cpu, std::uint16_t type, std::uint64_t tsc, std::int32_t pid,
             std::uint64_t table) {
    auto record = driver_record<ptkit_record_space>(type, tsc, pid);
    record.kernel_cr3 = record.user_cr3 = table;
    device_.write_record(cpu, record);
  }
  void fork(std::uint32_t cpu, std::uint64_t tsc, std::int32_t parent, std::int32_t pid,
            std::uint64_t table) {
    ptkit_record_fork record{};
    record.space = driver_record<ptkit_record_space>(PTKIT_RECORD_FORK, tsc, pid);
    record.space.kernel_cr3 = record.space.user_cr3 = table;
    record.parent_pid = record.parent_tid = parent;
    device_.write_record(cpu, record);
  }
  void exit(std::uint32_t cpu, std::uint64_t tsc, std::int32_t pid, std::int32_t status) {
    auto record = driver_record<ptkit_record_exit>(PTKIT_RECORD_EXIT, tsc, pid);
    record.status = status;
    device_.write_record(cpu, record);
  }
  // perf's records of exec().
  void program(int cpu, std::uint64_t time, int pid, std::uint64_t address, const std::string& path) {
    const std::string file = std::filesystem::path(path).filename();
    kernel_.write_record(cpu, perf::COMM, perf::kMiscCommExec, {time, pid, pid}, name(pid, file));
    kernel_.write_record(cpu, perf::MMAP2, 0, {time + 1, pid, pid}, mapping(pid, address, kPage, path));
  }
  [[nodiscard]] std::vector<const FakeKernel::Event*> dummies() const {
    return kernel_.of_type(PERF_TYPE_SOFTWARE);
  }
  // Records for 20 ms.
  base::Result<RecordResult> record_shortly() {
    options_.seconds = std::chrono::milliseconds(20);
    return record();
  }

  std::string program_ = std::filesystem::canonical("/bin/sh");
};

TEST_F(DriverPerfSideband, OpensOneDummyEventPerCpu) {
  ASSERT_TRUE(record_shortly().ok());
  ASSERT_EQ(dummies().size(), 2U);
  EXPECT_EQ(kernel_.events.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const FakeKernel::Event& event = *dummies()[i];
    EXPECT_EQ(event.attr.config, static_cast<std::uint64_t>(PERF_COUNT_SW_DUMMY));
    EXPECT_EQ(event.tid, -1);
    EXPECT_EQ(event.cpu, static_cast<int>(i));
    EXPECT_TRUE(event.attr.mmap && event.attr.mmap2 && event.attr.comm && event.attr.comm_exec);
    EXPECT_FALSE(event.attr.context_switch || event.attr.inherit || event.attr.disabled);
  }
}

TEST_F(DriverPerfSideband, OpensEventsOfChosenCpus) {
  options_.cpus.all = false;
  options_.cpus.numbers = {1};
  ASSERT_TRUE(record_shortly().ok());
  ASSERT_EQ(dummies().size(), 1U);
  EXPECT_EQ(dummies()[0]->cpu, 1);
}

// Events of threads would change the traced code of context switches.
TEST_F(DriverPerfSideband, OpensEventsOfCpusForProcess) {
  reset_unit_options(options_);
  options_.pid = ::getpid();
  ASSERT_TRUE(record_shortly().ok());
  ASSERT_EQ(dummies().size(), 2U);
  for (const FakeKernel::Event* event : dummies()) EXPECT_EQ(event->tid, -1);
}

// Events of CPUs have records of all processes. A child counts from its FORK record on.
TEST_F(DriverPerfSideband, IgnoresOtherProcesses) {
  reset_unit_options(options_);
  options_.pid = ::getpid();
  options_.seconds = std::chrono::milliseconds(300);
  device_.script.emplace_back([this](FakeDevice&) {
    fork(1, 20, ::getpid(), kFirst, 0xc000);
    exit(1, 40, kFirst, 0);
    for (const int pid : {::getpid(), kFirst, kFirst + 1}) {
      for (const std::uint64_t time : {10U, 30U, 50U})
        kernel_.write_record(0, perf::COMM, 0, {time, pid, pid}, name(pid, "name"));
      program(0, 60, kFirst + 1, 0x100000, program_);
    }
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  std::set<std::pair<std::int64_t, std::uint64_t>> named;
  const auto bundle = read();
  for (const trace::Sideband& one : bundle->sideband) {
    EXPECT_NE(one.pid, kFirst + 1);
    if (one.kind == SidebandKind::THREAD && one.text == "name") named.emplace(one.pid, one.tsc);
  }
  const decltype(named) expected{{::getpid(), 10}, {::getpid(), 30}, {::getpid(), 50}, {kFirst, 30}};
  EXPECT_EQ(named, expected);
}

TEST_F(DriverPerfSideband, LeavesOutFieldsThatOldKernelsDoNotKnow) {
  kernel_.open_error = [](const perf_event_attr& attr, int, int) { return attr.build_id != 0 ? EINVAL : 0; };
  const auto result = record_shortly();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_EQ(dummies().size(), 2U);
  EXPECT_FALSE(warns(result.value().warnings, WarningCode::MAPPINGS_NOT_RECORDED));
}

// The life of a process, in the order of time. The driver's EXEC record comes after perf's mappings.
TEST_F(DriverPerfSideband, MergesRecordsOfBothByTime) {
  const int child = kFirst + 1;
  device_.script.emplace_back([this](FakeDevice&) {
    space(1, PTKIT_RECORD_SWITCH, 50, kFirst, 0xa000);
    program(1, 5, kFirst, 0x100000, program_);
    fork(1, 100, kFirst, child, 0xc000);
    space(0, PTKIT_RECORD_SWITCH, 110, child, 0xc000);
    kernel_.write_record(0, perf::COMM, 0, {120, child, child}, name(child, "renamed"));
    kernel_.write_record(0, perf::MMAP2, 0, {130, child, child}, mapping(child, 0x300000, kPage, program_));
    kernel_.write_record(0, perf::MMAP2, 0, {140, child, child}, mapping(child, 0x500000, kPage, "//anon"));
    program(0, 200, child, 0x700000, program_);
    space(0, PTKIT_RECORD_EXEC, 210, child, 0xe000);
    exit(0, 300, child, 7 << 8);
    space(0, PTKIT_RECORD_SWITCH, 301, -1, 0);
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_FALSE(warns(result.value().warnings, WarningCode::MAPPINGS_NOT_RECORDED));
  const auto bundle = read();
  using Row = std::tuple<SidebandKind, std::uint64_t, std::string>;
  std::vector<Row> rows;
  std::int64_t status = 0;
  for (const trace::Sideband& one : bundle->sideband) {
    if (one.pid != child) continue;
    if (one.kind == SidebandKind::EXIT) status = one.value;
    const std::string file =
        one.file >= 0 ? bundle->files[static_cast<std::size_t>(one.file)].path : one.text;
    rows.emplace_back(one.kind, one.tsc, file);
  }
  const std::string file = std::filesystem::path(program_).filename();
  const std::vector<Row> expected{{SidebandKind::MAP, 6, program_},       {SidebandKind::PROCESS, 100, ""},
                                  {SidebandKind::THREAD, 120, "renamed"}, {SidebandKind::MAP, 130, program_},
                                  {SidebandKind::MAP, 140, "//anon"},     {SidebandKind::THREAD, 200, file},
                                  {SidebandKind::EXEC, 201, program_},    {SidebandKind::MAP, 201, program_},
                                  {SidebandKind::EXIT, 300, ""}};
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(status, 7);
  std::vector<std::tuple<std::uint64_t, std::int64_t, std::uint64_t>> switches;
  for (const trace::Switch& one : bundle->streams[0].switches) {
    switches.emplace_back(one.tsc, one.pid,
                          one.space < bundle->spaces.size() ? bundle->spaces[one.space].cr3 : 0);
  }
  EXPECT_EQ(switches, (decltype(switches){{110, child, 0xc000}, {200, child, 0xe000}, {301, -1, 0}}));
}

TEST_F(DriverPerfSideband, CountsLostRecords) {
  options_.sideband_bytes = kPage;
  for (int i = 0; i < 2; ++i) {
    device_.script.emplace_back([this](FakeDevice&) {
      for (std::uint64_t time = 1; time <= 100; ++time)
        kernel_.write_record(1, perf::COMM, 0, {time, kFirst, kFirst}, name(kFirst, "name"));
    });
  }
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  const auto bundle = read();
  const auto rows = std::ranges::count_if(bundle->sideband, [](const trace::Sideband& one) {
    return one.kind == SidebandKind::THREAD && one.pid == kFirst;
  });
  const FakeKernel::Buffer& ring = kernel_.buffer(1);
  EXPECT_EQ(static_cast<std::uint64_t>(rows), 200 - ring.lost);
  EXPECT_GT(ring.lost, ring.unreported);
  // The next record would report the others.
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::SIDEBAND_LOST, ring.lost - ring.unreported));
}

// seccomp, kernel lockdown and security modules refuse with these.
TEST_F(DriverPerfSideband, RecordsWithoutPerfEvents) {
  for (const int error : {EPERM, EACCES, ENOSYS, EMFILE}) {
    kernel_.open_error = [error](const perf_event_attr&, int, int) { return error; };
    device_.next = 0;
    device_.script.clear();
    device_.script.emplace_back([this](FakeDevice& device) {
      device.write(0, psb());
      space(0, PTKIT_RECORD_SWITCH, 10, ::getpid(), 0xa000);
      space(0, PTKIT_RECORD_EXEC, 20, ::getpid(), 0xc000);
    });
    device_.cpus.clear();
    const auto result = record();
    ASSERT_TRUE(result.ok()) << result.failure().detail;
    EXPECT_TRUE(warns(result.value().warnings, WarningCode::MAPPINGS_NOT_RECORDED,
                      std::string("perf_event_open: ") + std::strerror(error)));
    EXPECT_TRUE(kernel_.events.empty());
    const auto bundle = read();
    EXPECT_EQ(bundle->streams[0].data.size(), psb().size());
    // /proc has the code of the new program.
    const trace::SpaceId last = bundle->streams[0].switches.back().space;
    EXPECT_EQ(bundle->spaces.at(last).cr3, 0xc000U);
    EXPECT_TRUE(std::ranges::any_of(bundle->code, [last](const trace::CodeRegion& region) {
      return region.space == last && region.bytes.size() != 0;
    }));
  }
}

TEST_F(DriverPerfSideband, ClosesAllEventsIfOneIsRefused) {
  kernel_.open_error = [](const perf_event_attr&, int, int cpu) { return cpu == 1 ? EACCES : 0; };
  const auto result = record_shortly();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::MAPPINGS_NOT_RECORDED));
  EXPECT_TRUE(dummies().empty());
  EXPECT_EQ(kernel_.closed, 1U);
  EXPECT_TRUE(kernel_.buffers.empty());
}

TEST_F(DriverPerfSideband, TakesSmallerRingsWhereLessMayBeLocked) {
  kernel_.map_error = [](std::uint64_t bytes, bool) { return bytes > 17 * kPage ? EPERM : 0; };
  const auto result = record_shortly();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::RINGS_LIMIT_LOCKED, 64));
  EXPECT_EQ(dummies().size(), 2U);
}

TEST_F(DriverPerfSideband, RecordsWithoutRingsIfNoneMayBeLocked) {
  kernel_.map_error = [](std::uint64_t, bool) { return EPERM; };
  const auto result = record_shortly();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(
      warns(result.value().warnings, WarningCode::MAPPINGS_NOT_RECORDED, "mmap: Operation not permitted"));
  EXPECT_TRUE(dummies().empty());
}

TEST_F(DriverPerfSideband, WarnsOfClockThatIsNotTsc) {
  kernel_.has_time = false;
  const auto result = record_shortly();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::CLOCK_NOT_TSC));
}

// A driver without sideband has no switches that mappings could belong to.
TEST_F(DriverPerfSideband, OpensNoEventsWithoutSidebandOfDriver) {
  device_.query.features &= ~std::uint64_t{PTKIT_FEATURE_SIDEBAND};
  const auto result = record_shortly();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(kernel_.events.empty());
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::SIDEBAND_UNSUPPORTED));
  EXPECT_FALSE(warns(result.value().warnings, WarningCode::MAPPINGS_NOT_RECORDED));
}

// The code of the kernel is read once. All CPUs report what changes afterwards, as any of them may change it.
TEST_F(DriverPerfSideband, RecordsChangesOfKernelCode) {
  constexpr std::uint64_t kPatched = 0xffffffff81000010;
  options_.levels.kernel = true;
  options_.cpus.all = false;
  options_.cpus.numbers = {1};
  device_.script.emplace_back([this](FakeDevice&) {
    const std::uint64_t never = read_tsc() + (std::uint64_t{1} << 50U);
    const Bytes body = poke(kPatched, {0x90, 0x90}, {0xeb, 0x10});
    kernel_.write_record(0, perf::TEXT_POKE, 0, {1, 1, 1}, body);  // before the code was saved
    kernel_.write_record(0, perf::TEXT_POKE, 0, {never, 1, 1}, body);
  });
  const auto result = record();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_FALSE(warns(result.value().warnings, WarningCode::KERNEL_CHANGES_UNKNOWN));
  std::vector<int> cpus;
  for (const FakeKernel::Event* event : dummies()) {
    if (event->attr.ksymbol != 0 && event->attr.text_poke != 0) cpus.push_back(event->cpu);
  }
  EXPECT_EQ(cpus, (std::vector{0, 1}));
  EXPECT_EQ(dummies().size(), 3U);
  const auto bundle = read();
  EXPECT_EQ(std::ranges::count_if(bundle->code,
                                  [](const trace::CodeRegion& region) {
                                    return region.address == kPatched && region.size == 2;
                                  }),
            2);
}

TEST_F(DriverPerfSideband, WarnsIfChangesOfKernelCodeAreUnknown) {
  options_.levels.kernel = true;
  kernel_.open_error = [](const perf_event_attr& attr, int, int) { return attr.text_poke != 0 ? EINVAL : 0; };
  const auto result = record_shortly();
  ASSERT_TRUE(result.ok()) << result.failure().detail;
  EXPECT_TRUE(warns(result.value().warnings, WarningCode::KERNEL_CHANGES_UNKNOWN));
  EXPECT_FALSE(warns(result.value().warnings, WarningCode::MAPPINGS_NOT_RECORDED));
  EXPECT_EQ(dummies().size(), 2U);
}

TEST_F(DriverPerfSideband, PollsRings) {
  ASSERT_TRUE(record_shortly().ok());
  const std::set<int> polled(kernel_.polled.begin(), kernel_.polled.end());
  EXPECT_TRUE(polled.contains(0) && polled.contains(1) && polled.contains(device_.event));
}

// Finding all processes takes long: what is mapped meanwhile is recorded, before tracing starts.
TEST_F(DriverPerfSideband, RecordsBeforeStart) {
  device_.on_configure = [this] {
    kernel_.open_error = [this](const perf_event_attr&, int, int cpu) {
      if (cpu == 1) kernel_.write_record(0, perf::COMM, 0, {5, kFirst, kFirst}, name(kFirst, "early"));
      return 0;
    };
  };
  ASSERT_TRUE(record_shortly().ok());
  const auto bundle = read();
  EXPECT_TRUE(std::ranges::any_of(bundle->sideband, [](const trace::Sideband& one) {
    return one.kind == SidebandKind::THREAD && one.text == "early" && one.tsc == 5;
  }));
}

}  // namespace
}  // namespace ptkit::capture::test
