#include "capture/windows/win32/last_branches.h"

#include <cinttypes>
#include <cstdio>
#include <iterator>

#include "capture/windows/port.h"
#include "capture/windows/win32/device.h"
#include "capture/windows/win32/machine.h"

namespace ptkit::capture::win32 {

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

}  // namespace ptkit::capture::win32
