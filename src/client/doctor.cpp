#include "client/doctor.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <string>

#include "capture/driver/config.h"
#include "client/device.h"
#include "client/machine.h"
#include "client/wide.h"

namespace ptkit::client {

namespace {

struct Named {
  std::uint64_t bit;
  const char* words;
};

constexpr std::array<Named, 8> kFeatures{{
    {PTKIT_FEATURE_TOPA, "output to a table of regions (ToPA)"},
    {PTKIT_FEATURE_SINGLE_RANGE, "output to a single range (--single-range)"},
    {PTKIT_FEATURE_PROCESS, "one process, by CR3 (-p, a program)"},
    {PTKIT_FEATURE_PROCESS_BOTH, "user and kernel code of one process (--levels both)"},
    {PTKIT_FEATURE_WAKE_UP, "recordings without end: buffers are emptied while tracing goes on"},
    {PTKIT_FEATURE_SIDEBAND, "processes, threads and images"},
    {PTKIT_FEATURE_BTS, "Branch Trace Store (--bts)"},
    {PTKIT_FEATURE_VMX, "tracing while a hypervisor runs"},
}};

constexpr std::array<Named, 5> kSystem{{
    {PTKIT_SYSTEM_HYPERVISOR, "a hypervisor runs below Windows"},
    {PTKIT_SYSTEM_VBS, "virtualization-based security is on"},
    {PTKIT_SYSTEM_KVA_SHADOW, "user code has page tables of its own (KVA shadow)"},
    {PTKIT_SYSTEM_INTERRUPTS, "the driver has the interrupt of performance monitoring"},
    {PTKIT_SYSTEM_RE_ARMS, "it takes that interrupt again and again"},
}};

template <std::size_t N>
void print(const std::array<Named, N>& all, std::uint64_t bits) {
  for (const Named& one : all) std::printf("  %-3s  %s\n", (bits & one.bit) != 0 ? "yes" : "no", one.words);
}

void print_version(std::uint32_t version) {
  std::printf("driver:     version %u.%u.%u\n", version >> 16U, version >> 8U & 0xffU, version & 0xffU);
}

void print_query(const ptkit_windows_query& query) {
  const ptkit_query& common = query.query;
  print_version(common.driver_version);
  std::printf("processors: %u, TSC of %u kHz, %u address ranges\n", common.cpus, common.tsc_khz,
              capture::capabilities_of(common).ranges());
  std::printf("buffers:    up to %" PRIu64 " bytes for each processor\n", common.most_bytes);
  std::printf("what driver and processor can do:\n");
  print(kFeatures, common.features);
  std::printf("what this Windows is like:\n");
  print(kSystem, query.system);
}

}  // namespace

int doctor() {
  std::printf("machine:    %s\n", this_machine().name.c_str());
  enable_privileges();
  auto device = Device::open();
  if (!device.ok()) {
    std::printf("driver:     %s\n", device.failure().detail.c_str());
    return 1;
  }
  auto query = capture::query_driver(*device.value());
  if (!query.ok()) {
    std::printf("driver:     %s\n", query.failure().detail.c_str());
    return 1;
  }
  print_query(query.value());
  if (query.value().reason == PTKIT_REASON_NONE) {
    std::printf("recording:  possible\n");
    return 0;
  }
  std::printf("recording:  impossible: %s\n", capture::reason_text(query.value().reason));
  return 1;
}

std::optional<base::Failure> print_last_branches() {
  enable_privileges();
  auto device = Device::open();
  if (!device.ok()) return device.failure();
  auto query = capture::query_driver(*device.value());
  if (!query.ok()) return query.failure();
  for (std::uint32_t cpu = 0; cpu < query.value().query.cpus; ++cpu) {
    ptkit_windows_lbr stack{};
    stack.cpu = cpu;
    if (const auto error = capture::exchange(*device.value(), PTKIT_WINDOWS_LBR, stack); error != 0)
      return capture::refused_by(*device.value(), "read the stack of last branches", error);
    std::printf("CPU %u: %u branches, newest first%s\n", cpu, stack.count,
                stack.enabled != 0 ? "" : " (none is recorded now)");
    for (std::uint32_t i = 0; i < stack.count && i < std::size(stack.branches); ++i) {
      const ptkit_windows_branch& one = stack.branches[i];
      std::printf("  %016" PRIx64 " -> %016" PRIx64 "  info %016" PRIx64 "\n", one.from, one.to, one.info);
    }
  }
  return std::nullopt;
}

}  // namespace ptkit::client
