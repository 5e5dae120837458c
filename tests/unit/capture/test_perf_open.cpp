// Who perf's back end opens events for, what it says of those that it cannot have, and how much memory it
// takes.
#include <sys/ioctl.h>

#include "perf_recording.h"

namespace ptkit::capture::test {
namespace {

class PerfOpen : public PerfRecording {
 protected:
  PerfOpen() {
    options_.hardware = {};
    options_.hardware.pid = ::getpid();
    options_.hardware.limit_ms = 50;
  }

  std::vector<std::string> warnings() {
    const auto result = record();
    EXPECT_TRUE(result.ok()) << result.failure().detail;
    return result.ok() ? result.value().warnings : std::vector<std::string>{};
  }

  const std::string process_ = "process " + std::to_string(::getpid());
};

// ---- threads

TEST_F(PerfOpen, ThreadsThatSomebodyElseTracesAreNamed) {
  kernel_.threads[::getpid()] = {::getpid(), kFirst, kFirst + 1, kFirst + 2};
  kernel_.open_error = [](const perf_event_attr& attr, int tid, int cpu) {
    if (attr.type != kUnitType) return 0;
    return tid == kFirst || (tid == kFirst + 1 && cpu == 1) ? EBUSY : 0;
  };
  EXPECT_TRUE(mentions(warnings(), "Of " + process_ + " 2 threads (" + std::to_string(kFirst) + ", " +
                                       std::to_string(kFirst + 1) + ") could not be traced, or not on all"));
  EXPECT_EQ(kernel_.of_type(kUnitType).size(), 5U);
  // The first one is no exception; with all of them nothing is left to record.
  kernel_.open_error = [](const perf_event_attr& attr, int tid, int) {
    return attr.type == kUnitType && tid == ::getpid() ? EBUSY : 0;
  };
  EXPECT_TRUE(mentions(warnings(), "Of " + process_ + " 1 thread (" + std::to_string(::getpid()) + ")"));
  kernel_.open_error = [](const perf_event_attr& attr, int, int) {
    return attr.type == kUnitType ? EBUSY : 0;
  };
  EXPECT_NE(refused().find("somebody else traces already"), std::string::npos);
}

TEST_F(PerfOpen, ManyBusyThreadsAreALine) {
  auto& threads = kernel_.threads[::getpid()];
  for (int i = 0; i < 5000; ++i) threads.push_back(kFirst + i);
  threads.push_back(::getpid());
  kernel_.open_error = [](const perf_event_attr& attr, int tid, int) {
    return attr.type == kUnitType && tid != ::getpid() ? EBUSY : 0;
  };
  const auto all = warnings();
  ASSERT_TRUE(mentions(all, "Of " + process_ + " 5000 threads"));
  EXPECT_TRUE(mentions(all, std::to_string(kFirst + 9) + ", ...)"));
}

// The first thread of a process may end before the others do.
TEST_F(PerfOpen, ThreadsThatHaveEndedAreNoReasonToRefuse) {
  kernel_.threads[::getpid()] = {::getpid(), kFirst};
  kernel_.open_error = [](const perf_event_attr&, int tid, int) { return tid == ::getpid() ? ESRCH : 0; };
  EXPECT_TRUE(warnings().empty());
  EXPECT_EQ(kernel_.of_type(kUnitType).size(), 2U);
  kernel_.open_error = [](const perf_event_attr&, int, int) { return ESRCH; };
  EXPECT_NE(refused().find("pid: there is no " + process_ + " any more"), std::string::npos);
}

// With a buffer for each thread nothing is inherited.
TEST_F(PerfOpen, ThreadsThatBeginMeanwhileMayBeSomebodyElses) {
  options_.hardware.per_thread = true;
  kernel_.threads[::getpid()] = {::getpid()};
  kernel_.open_error = [&](const perf_event_attr& attr, int tid, int) {
    kernel_.threads[::getpid()] = {::getpid(), kFirst};
    return tid == kFirst && attr.type == kUnitType ? EBUSY : 0;
  };
  EXPECT_TRUE(mentions(warnings(), "Of " + process_ + " 1 thread"));
}

TEST_F(PerfOpen, ThreadsThatBeginFasterThanTheyAreFoundAreSaid) {
  int next = kFirst;
  kernel_.threads[::getpid()] = {::getpid()};
  kernel_.open_error = [&](const perf_event_attr& attr, int, int cpu) {
    if (attr.type == kUnitType && cpu == 0 && next < kFirst + 100)
      kernel_.threads[::getpid()].push_back(next++);
    return 0;
  };
  EXPECT_TRUE(mentions(warnings(), "began threads while its threads were looked for, again and again"));
  kernel_.threads[::getpid()] = {::getpid()};
  next = kFirst + 99;  // one more
  EXPECT_TRUE(warnings().empty());
}

// ---- what an older kernel does not know

TEST_F(PerfOpen, WhatIsInvalidIsFoundByLeavingItOut) {
  kernel_.open_error = [](const perf_event_attr& attr, int, int) { return attr.config != 0 ? EINVAL : 0; };
  EXPECT_NE(refused().find("timing, packets, event: the kernel refuses these settings (config 0x100c600)"),
            std::string::npos)
      << refused();
  kernel_.open_error = [](const perf_event_attr& attr, int, int) {
    return attr.inherit_thread != 0 ? EINVAL : 0;
  };
  options_.hardware.children = false;
  EXPECT_NE(refused().find("children: this kernel cannot follow threads without children"), std::string::npos)
      << refused();
  options_.hardware.recorded = Recorded::STORE;
  EXPECT_NE(refused().find("children: this kernel cannot follow threads without children"), std::string::npos)
      << refused();
  options_.hardware.children = true;
  options_.hardware.recorded = Recorded::PACKETS;
  EXPECT_TRUE(record().ok());
  kernel_.open_error = [](const perf_event_attr& attr, int, int) {
    return attr.type == PERF_TYPE_SOFTWARE ? EINVAL : 0;
  };
  EXPECT_NE(refused().find("this kernel cannot tell of switches, names and mappings"), std::string::npos);
}

TEST_F(PerfOpen, ProgramsThatAreNotToldApartAreSaidOnce) {
  options_.hardware.recorded = Recorded::STORE;
  kernel_.open_error = [](const perf_event_attr& attr, int, int) {
    return attr.enable_on_exec != 0 ? ENOSPC : 0;
  };
  const auto all = warnings();
  EXPECT_EQ(
      std::count_if(all.begin(), all.end(),
                    [](const std::string& one) {
                      return one.find("branches of a program may be joined with those of the next one") !=
                             std::string::npos;
                    }),
      1);
  kernel_.open_error = [](const perf_event_attr& attr, int, int) {
    return attr.enable_on_exec != 0 ? ESRCH : 0;
  };
  EXPECT_TRUE(warnings().empty());
}

// ---- memory

TEST_F(PerfOpen, ManyBuffersAreSmaller) {
  options_.hardware.per_thread = true;
  auto& threads = kernel_.threads[::getpid()];
  for (int i = 0; i < 300; ++i) threads.push_back(kFirst + i);
  EXPECT_TRUE(warnings().empty());
  EXPECT_EQ(kernel_.buffers.begin()->second.trace.size(), 4U << 20U);
  kernel_.buffers.clear();
  kernel_.files["/proc/meminfo"] =
      "MemTotal:  900000 kB\nMemFree: 5 kB\nMemAvailable:   819200 kB\nBuffers: 7 kB";
  EXPECT_TRUE(mentions(
      warnings(),
      "Buffers have 256 KiB only, as there is no memory for 300 larger ones (800 MiB are free): give"));
  EXPECT_EQ(kernel_.buffers.size(), 300U);
  std::size_t sum = 0;
  for (const auto& [event, buffer] : kernel_.buffers) sum += buffer.trace.size() + buffer.first.size();
  EXPECT_LE(sum, std::size_t{201} << 20U);
  // Who says how much may have all of it, and no more.
  kernel_.buffers.clear();
  options_.hardware.buffer_bytes = 1 << 20;
  EXPECT_TRUE(warnings().empty());
  options_.hardware.buffer_bytes = 4 << 20;
  EXPECT_NE(
      refused().find("buffer: there is not enough memory for 4096 KiB for each of 300 buffers (800 MiB are "
                     "free); ask for less (buffer, ring), or record fewer threads"),
      std::string::npos)
      << refused();
}

TEST_F(PerfOpen, LessIsTriedWhereTheKernelHasNoMemory) {
  kernel_.map_error = [](std::uint64_t bytes, bool) { return bytes > 600'000 ? ENOMEM : 0; };
  EXPECT_TRUE(
      mentions(warnings(), "Buffers have 256 KiB only, as there is no memory for 2 larger ones: give"));
  kernel_.map_error = [](std::uint64_t, bool) { return ENOMEM; };
  EXPECT_EQ(refused().find("vm.max_map_count"), std::string::npos);
  kernel_.files["/proc/sys/vm/max_map_count"] = "4";
  EXPECT_NE(refused().find("a process may map 4 parts (vm.max_map_count)"), std::string::npos) << refused();
}

}  // namespace
}  // namespace ptkit::capture::test
