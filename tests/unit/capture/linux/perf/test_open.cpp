// Opening of events: busy threads, older kernels, sizes of buffers.
#include <sys/ioctl.h>

#include "recording.h"

namespace ptkit::capture::test {
namespace {

class PerfOpen : public PerfRecording {
 protected:
  PerfOpen() {
    reset_unit_options(options_);
    options_.pid = ::getpid();
    options_.seconds = std::chrono::milliseconds(50);
  }

  std::vector<trace::Warning> warnings() {
    const auto result = record();
    EXPECT_TRUE(result.ok()) << result.failure().detail;
    return result.ok() ? result.value().warnings : std::vector<trace::Warning>{};
  }

  const std::string process_ = "process " + std::to_string(::getpid());
};

// ---- threads

TEST_F(PerfOpen, WarnsOfBusyThreads) {
  kernel_.threads[::getpid()] = {::getpid(), kFirst, kFirst + 1, kFirst + 2};
  kernel_.open_error = [](const perf_event_attr& attr, int tid, int cpu) {
    if (attr.type != kPtType) return 0;
    return tid == kFirst || (tid == kFirst + 1 && cpu == 1) ? EBUSY : 0;
  };
  EXPECT_TRUE(warns(warnings(), WarningCode::THREADS_BUSY, 2, ::getpid(),
                    std::to_string(kFirst) + ", " + std::to_string(kFirst + 1)));
  EXPECT_EQ(kernel_.of_type(kPtType).size(), 5U);
  // The first thread may be busy, too. If all threads are busy, the recording fails.
  kernel_.open_error = [](const perf_event_attr& attr, int tid, int) {
    return attr.type == kPtType && tid == ::getpid() ? EBUSY : 0;
  };
  EXPECT_TRUE(warns(warnings(), WarningCode::THREADS_BUSY, 1, ::getpid(), ::getpid()));
  kernel_.open_error = [](const perf_event_attr& attr, int, int) { return attr.type == kPtType ? EBUSY : 0; };
  EXPECT_NE(refused().find("another tracer is active"), std::string::npos);
}

TEST_F(PerfOpen, ShortensListOfBusyThreads) {
  auto& threads = kernel_.threads[::getpid()];
  for (int i = 0; i < 5000; ++i) threads.push_back(kFirst + i);
  threads.push_back(::getpid());
  kernel_.open_error = [](const perf_event_attr& attr, int tid, int) {
    return attr.type == kPtType && tid != ::getpid() ? EBUSY : 0;
  };
  const auto all = warnings();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_TRUE(warns(all, WarningCode::THREADS_BUSY, 5000));
  EXPECT_TRUE(all[0].arguments.at(2).ends_with(std::to_string(kFirst + 9) + ", ..."));
}

// The first thread of a process may exit before the other threads.
TEST_F(PerfOpen, SkipsExitedThreads) {
  kernel_.threads[::getpid()] = {::getpid(), kFirst};
  kernel_.open_error = [](const perf_event_attr&, int tid, int) { return tid == ::getpid() ? ESRCH : 0; };
  EXPECT_TRUE(warnings().empty());
  EXPECT_EQ(kernel_.of_type(kPtType).size(), 2U);
  kernel_.open_error = [](const perf_event_attr&, int, int) { return ESRCH; };
  EXPECT_NE(refused().find("pid: there is no " + process_ + " any more"), std::string::npos);
}

// With a buffer for each thread, no event is inherited.
TEST_F(PerfOpen, WarnsOfBusyNewThreads) {
  options_.per_thread = true;
  kernel_.threads[::getpid()] = {::getpid()};
  kernel_.open_error = [&](const perf_event_attr& attr, int tid, int) {
    kernel_.threads[::getpid()] = {::getpid(), kFirst};
    return tid == kFirst && attr.type == kPtType ? EBUSY : 0;
  };
  EXPECT_TRUE(warns(warnings(), WarningCode::THREADS_BUSY, 1));
}

TEST_F(PerfOpen, WarnsIfThreadsBeginTooFast) {
  int next = kFirst;
  kernel_.threads[::getpid()] = {::getpid()};
  kernel_.open_error = [&](const perf_event_attr& attr, int, int cpu) {
    if (attr.type == kPtType && cpu == 0 && next < kFirst + 100)
      kernel_.threads[::getpid()].push_back(next++);
    return 0;
  };
  EXPECT_TRUE(warns(warnings(), WarningCode::THREADS_NOT_FOUND, ::getpid()));
  kernel_.threads[::getpid()] = {::getpid()};
  next = kFirst + 99;  // one more
  EXPECT_TRUE(warnings().empty());
}

// ---- older kernels

TEST_F(PerfOpen, FindsInvalidFieldByRemovingIt) {
  kernel_.open_error = [](const perf_event_attr& attr, int, int) { return attr.config != 0 ? EINVAL : 0; };
  EXPECT_NE(refused().find("timing, packets, event: the kernel refuses these settings (config 0x100c600)"),
            std::string::npos)
      << refused();
  kernel_.open_error = [](const perf_event_attr& attr, int, int) {
    return attr.inherit_thread != 0 ? EINVAL : 0;
  };
  options_.children = false;
  EXPECT_NE(refused().find("children: this kernel cannot follow threads without children"), std::string::npos)
      << refused();
  options_.bts = true;
  EXPECT_NE(refused().find("children: this kernel cannot follow threads without children"), std::string::npos)
      << refused();
  options_.children = true;
  options_.bts = false;
  options_.branch_stack.clear();
  EXPECT_TRUE(record().ok());
  kernel_.open_error = [](const perf_event_attr& attr, int, int) {
    return attr.type == PERF_TYPE_SOFTWARE ? EINVAL : 0;
  };
  EXPECT_NE(refused().find("this kernel has no sideband records"), std::string::npos);
}

TEST_F(PerfOpen, WarnsOnceOfMissingEnableOnExec) {
  options_.bts = true;
  kernel_.open_error = [](const perf_event_attr& attr, int, int) {
    return attr.enable_on_exec != 0 ? ENOSPC : 0;
  };
  const auto all = warnings();
  EXPECT_EQ(std::ranges::count(all, WarningCode::EXEC_NOT_SPLIT, &trace::Warning::code), 1);
  kernel_.open_error = [](const perf_event_attr& attr, int, int) {
    return attr.enable_on_exec != 0 ? ESRCH : 0;
  };
  EXPECT_TRUE(warnings().empty());
}

TEST_F(PerfOpen, KernelsThatDoNotReportTheirChangesAreSaid) {
  options_.levels.kernel = true;
  kernel_.open_error = [](const perf_event_attr& attr, int, int) { return attr.text_poke != 0 ? EINVAL : 0; };
  EXPECT_TRUE(warns(warnings(), WarningCode::KERNEL_CHANGES_UNKNOWN));
}

TEST_F(PerfOpen, RowsWithoutTimesHaveNoThreads) {
  options_.timing = no_names<TimingPackets>();
  EXPECT_TRUE(warns(warnings(), WarningCode::NO_TSC_PACKETS));
  options_.per_thread = true;
  EXPECT_FALSE(warns(warnings(), WarningCode::NO_TSC_PACKETS));
}

// ---- memory

TEST_F(PerfOpen, ShrinksManyBuffers) {
  options_.per_thread = true;
  auto& threads = kernel_.threads[::getpid()];
  for (int i = 0; i < 300; ++i) threads.push_back(kFirst + i);
  EXPECT_TRUE(warnings().empty());
  EXPECT_EQ(kernel_.buffers.begin()->second.trace.size(), 4U << 20U);
  kernel_.buffers.clear();
  kernel_.files["/proc/meminfo"] =
      "MemTotal:  900000 kB\nMemFree: 5 kB\nMemAvailable:   819200 kB\nBuffers: 7 kB";
  EXPECT_TRUE(warns(warnings(), WarningCode::BUFFERS_LIMIT_MEMORY, 256, 300, "800 MiB"));
  EXPECT_EQ(kernel_.buffers.size(), 300U);
  std::size_t sum = 0;
  for (const auto& [event, buffer] : kernel_.buffers) sum += buffer.trace.size() + buffer.first.size();
  EXPECT_LE(sum, std::size_t{201} << 20U);
  // A given size may take all free memory, but not more.
  kernel_.buffers.clear();
  options_.buffer = 1 << 20;
  EXPECT_TRUE(warnings().empty());
  options_.buffer = 4 << 20;
  EXPECT_NE(
      refused().find("buffer: there is not enough memory for 4096 KiB for each of 300 buffers (800 MiB are "
                     "free); use smaller sizes (buffer, ring), or record fewer threads"),
      std::string::npos)
      << refused();
}

TEST_F(PerfOpen, ShrinksBuffersOnEnomem) {
  kernel_.map_error = [](std::uint64_t bytes, bool) { return bytes > 600'000 ? ENOMEM : 0; };
  EXPECT_TRUE(warns(warnings(), WarningCode::BUFFERS_LIMIT_MEMORY, 256, 2, "unknown"));
  kernel_.map_error = [](std::uint64_t, bool) { return ENOMEM; };
  EXPECT_EQ(refused().find("vm.max_map_count"), std::string::npos);
  kernel_.files["/proc/sys/vm/max_map_count"] = "4";
  EXPECT_NE(refused().find("a process may map 4 parts (vm.max_map_count)"), std::string::npos) << refused();
}

}  // namespace
}  // namespace ptkit::capture::test
