#include "client/doctor.h"

#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <span>

#include "capture/driver/config.h"
#include "capture/windows/words.h"
#include "client/device.h"
#include "client/machine.h"
#include "client/wide.h"

namespace ptkit::client {

namespace {

void print(std::span<const capture::Words> all, std::uint64_t bits) {
  for (const capture::Words& one : all)
    std::printf("  %-3s  %s\n", (bits & one.code) != 0 ? "yes" : "no", one.words);
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
  print(capture::feature_words(), common.features);
  std::printf("what this Windows is like:\n");
  print(capture::system_words(), query.system);
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
