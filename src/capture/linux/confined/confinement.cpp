#include "capture/linux/confined/confinement.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "base/posix/fd.h"
#include "capture/linux/confined/privileges.h"
#include "capture/linux/confined/syscall_filter.h"

namespace ptkit::capture::confined {

namespace {

using Resource = decltype(RLIMIT_AS);

bool limit(Resource resource, std::uint64_t value) {
  const rlimit both{value, value};
  return ::setrlimit(resource, &both) == 0;
}

// The size of the address space: the first number of /proc/self/statm, in pages. 0: not known.
std::uint64_t mapped_bytes() {
  const base::Fd file(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  std::uint64_t pages = 0;
  if (got > 0) std::from_chars(text.data(), text.data() + got, pages);
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// Makes this process the OOM killer's first choice. The kernel may forbid it.
void raise_oom_score() {
  const base::Fd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  constexpr std::string_view kFirst = "1000";
  static_cast<void>(!::write(file.get(), kFirst.data(), kFirst.size()));
}

bool limit_all(const ConfinementLimits& limits, std::uint64_t memory_bytes) {
  constexpr std::array kNone{RLIMIT_FSIZE,  RLIMIT_NPROC,   RLIMIT_CORE,
                             RLIMIT_NOFILE, RLIMIT_MEMLOCK, RLIMIT_MSGQUEUE};
  return limit(RLIMIT_AS, memory_bytes) && limit(RLIMIT_CPU, limits.cpu_seconds) &&
         std::ranges::all_of(kNone, [](Resource resource) { return limit(resource, 0); });
}

// A change of credentials resets both, so they come after drop_privileges().
bool bind_to(pid_t parent) {
  return ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0 &&
         ::getppid() == parent;
}

}  // namespace

void close_descriptors_from(int first) {
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  constexpr long kMost = 1 << 20;
  const long end = std::clamp(::sysconf(_SC_OPEN_MAX), 0L, kMost);
  for (int file = first; file < end; ++file) static_cast<void>(::close(file));
}

bool confine(const ConfinementLimits& limits, pid_t parent) {
  const std::uint64_t mapped = mapped_bytes();
  if (mapped == 0) return false;
  raise_oom_score();
  const Privileges left = drop_privileges();
  if (left == Privileges::LEFT || !bind_to(parent)) return false;
  if (!limit_all(limits, mapped + limits.memory_bytes)) return false;
  // User 0 can open its files without capabilities, so it needs the filter.
  return install_syscall_filter() || left != Privileges::ROOT_USER;
}

}  // namespace ptkit::capture::confined
