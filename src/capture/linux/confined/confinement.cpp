#include "capture/linux/confined/confinement.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "base/posix/fd.h"
#include "capture/linux/confined/privileges.h"

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

// ---- The seccomp(2) filter, a BPF program written by hand: a privileged process needs no library for it

// System calls of the x86-64 ABI. x32 numbers differ, so they are rejected. Sanitizers need clock_gettime()
// and sigaltstack().
constexpr std::array<std::uint32_t, 14> kAllowed{
    SYS_pread64, SYS_read,  SYS_write, SYS_lseek,      SYS_munmap,      SYS_mremap,        SYS_brk,
    SYS_madvise, SYS_futex, SYS_exit,  SYS_exit_group, SYS_sched_yield, SYS_clock_gettime, SYS_sigaltstack};
constexpr std::array<std::uint32_t, 2> kAllowedWithoutExec{SYS_mmap, SYS_mprotect};
constexpr std::uint32_t kProtectionArgument = 2;

constexpr std::uint32_t kArchitecture = offsetof(seccomp_data, arch);
constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr);
// The low half of an argument.
constexpr std::uint32_t argument(std::uint32_t number) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + number * sizeof(std::uint64_t));
}

sock_filter load(std::uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
// `skipped`, `otherwise`: how many of the next instructions to skip.
sock_filter if_equal(std::uint32_t value, std::uint8_t skipped, std::uint8_t otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, skipped, otherwise);
}
sock_filter if_any(std::uint32_t bits, std::uint8_t skipped, std::uint8_t otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, skipped, otherwise);
}

class FilterProgram {
 public:
  void allow(std::uint32_t number) { add({if_equal(number, 0, 1), kAllow}); }
  // Allows the call where none of the bits is set in an argument.
  void allow_without(std::uint32_t number, std::uint32_t argument_number, std::uint32_t bits) {
    add({if_equal(number, 0, 4), load(argument(argument_number)), if_any(bits, 0, 1), kKill, kAllow});
  }
  // Fails the call with EACCES.
  void refuse(std::uint32_t number) { add({if_equal(number, 0, 1), kRefuse}); }
  [[nodiscard]] bool install() {
    add({kKill});
    const sock_fprog filter{static_cast<unsigned short>(program_.size()), program_.data()};
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
  }

 private:
  static constexpr sock_filter kAllow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  static constexpr sock_filter kRefuse = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES);
  static constexpr sock_filter kKill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);

  void add(std::initializer_list<sock_filter> instructions) { program_.insert(program_.end(), instructions); }

  std::vector<sock_filter> program_{load(kArchitecture), if_equal(AUDIT_ARCH_X86_64, 1, 0), kKill,
                                    load(kNumber)};
};

// For a process that only computes. Any system call kills the process by SIGSYS, except those that read,
// write or seek open descriptors, manage memory that is not executable, or end the process; openat() fails.
// Needs no_new_privs. Returns false if the kernel has no seccomp filters.
bool install_syscall_filter() {
  FilterProgram program;
  for (const std::uint32_t number : kAllowed) program.allow(number);
  for (const std::uint32_t number : kAllowedWithoutExec)
    program.allow_without(number, kProtectionArgument, PROT_EXEC);
  // The C library reads /proc/sys/vm/overcommit_memory before it gives back memory of a thread's heap, and
  // keeps the memory if it cannot.
  program.refuse(SYS_openat);
  return program.install();
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
