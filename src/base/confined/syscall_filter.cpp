#include "base/confined/syscall_filter.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace ptkit::base::confined {

namespace {

// System calls of the x86-64 ABI. x32 numbers differ, so they are rejected. Sanitizers need clock_gettime()
// and sigaltstack().
constexpr std::array<std::uint32_t, 14> kAllowed{
    SYS_pread64, SYS_read,  SYS_write, SYS_lseek,      SYS_munmap,      SYS_mremap,        SYS_brk,
    SYS_madvise, SYS_futex, SYS_exit,  SYS_exit_group, SYS_sched_yield, SYS_clock_gettime, SYS_sigaltstack};
constexpr std::array<std::uint32_t, 2> kAllowedWithoutExec{SYS_mmap, SYS_mprotect};
constexpr std::uint32_t kProtectionArgument = 2;

// What the dynamic linker, the C library and a C++ program need to read files and to write to a pipe.
constexpr std::array kAllowedToPrograms{
    SYS_execve,         SYS_access,          SYS_faccessat,    SYS_faccessat2,      SYS_stat,
    SYS_lstat,          SYS_fstat,           SYS_newfstatat,   SYS_statx,           SYS_readlink,
    SYS_readlinkat,     SYS_getcwd,          SYS_getdents64,   SYS_close,           SYS_fcntl,
    SYS_readv,          SYS_writev,          SYS_mmap,         SYS_mprotect,        SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_rt_sigreturn,    SYS_arch_prctl,   SYS_set_tid_address, SYS_set_robust_list,
    SYS_rseq,           SYS_prlimit64,       SYS_getrlimit,    SYS_getrandom,       SYS_sched_getaffinity,
    SYS_clock_getres,   SYS_clock_nanosleep, SYS_gettimeofday, SYS_times,           SYS_getrusage,
    SYS_uname,          SYS_sysinfo,         SYS_getpid,       SYS_getppid,         SYS_gettid,
    SYS_getuid,         SYS_geteuid,         SYS_getgid,       SYS_getegid,         SYS_getpgrp};
// The number of the argument that has the flags of open(2).
struct Opening {
  std::uint32_t number;
  std::uint32_t argument;
};
constexpr std::array kOpenings{Opening{SYS_open, 1}, Opening{SYS_openat, 2}};
constexpr std::uint32_t kChanging =
    O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);

constexpr std::uint32_t kArchitecture = offsetof(seccomp_data, arch);
constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr);
// The low half of an argument.
constexpr std::uint32_t argument(std::uint32_t number) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + number * sizeof(std::uint64_t));
}

sock_filter load(std::uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter return_action(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
// `skipped`, `otherwise`: how many of the next instructions to skip.
sock_filter if_equal(std::uint32_t value, std::uint8_t skipped, std::uint8_t otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, skipped, otherwise);
}
sock_filter if_any(std::uint32_t bits, std::uint8_t skipped, std::uint8_t otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, skipped, otherwise);
}

class FilterProgram {
 public:
  explicit FilterProgram(std::uint32_t otherwise) : otherwise_(return_action(otherwise)) {
    program_ = {load(kArchitecture), if_equal(AUDIT_ARCH_X86_64, 1, 0),
                return_action(SECCOMP_RET_KILL_PROCESS), load(kNumber)};
  }

  void allow(std::uint32_t number) { add({if_equal(number, 0, 1), kAllow}); }
  // Allows the call where none of the bits is set in an argument.
  void allow_without(std::uint32_t number, std::uint32_t argument_number, std::uint32_t bits) {
    add({if_equal(number, 0, 4), load(argument(argument_number)), if_any(bits, 0, 1), otherwise_, kAllow});
  }
  std::vector<sock_filter> finish() {
    add({otherwise_});
    return std::move(program_);
  }

 private:
  static constexpr sock_filter kAllow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);

  void add(std::initializer_list<sock_filter> instructions) { program_.insert(program_.end(), instructions); }

  sock_filter otherwise_;
  std::vector<sock_filter> program_;
};

}  // namespace

SystemCallFilter SystemCallFilter::for_computing() {
  FilterProgram program(SECCOMP_RET_KILL_PROCESS);
  for (const std::uint32_t number : kAllowed) program.allow(number);
  for (const std::uint32_t number : kAllowedWithoutExec)
    program.allow_without(number, kProtectionArgument, PROT_EXEC);
  return SystemCallFilter(program.finish());
}

SystemCallFilter SystemCallFilter::for_program() {
  FilterProgram program(SECCOMP_RET_ERRNO | ENOSYS);
  for (const std::uint32_t number : kAllowed) program.allow(number);
  for (const auto number : kAllowedToPrograms) program.allow(static_cast<std::uint32_t>(number));
  for (const Opening& one : kOpenings) program.allow_without(one.number, one.argument, kChanging);
  return SystemCallFilter(program.finish());
}

bool SystemCallFilter::install() const noexcept {
  // The kernel only reads it.
  const sock_fprog filter{static_cast<unsigned short>(program_.size()),
                          const_cast<sock_filter*>(program_.data())};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

}  // namespace ptkit::base::confined
