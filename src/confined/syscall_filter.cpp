#include "confined/syscall_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ptkit::confined {

namespace {

// System calls of the x86-64 ABI. x32 numbers differ, so they are rejected. Sanitizers need clock_gettime()
// and sigaltstack().
constexpr std::array<std::uint32_t, 14> kAllowed{
    SYS_pread64, SYS_read,  SYS_write, SYS_lseek,      SYS_munmap,      SYS_mremap,        SYS_brk,
    SYS_madvise, SYS_futex, SYS_exit,  SYS_exit_group, SYS_sched_yield, SYS_clock_gettime, SYS_sigaltstack};
// The third argument is the protection.
constexpr std::array<std::uint32_t, 2> kAllowedWithoutExec{SYS_mmap, SYS_mprotect};

constexpr std::uint32_t kArchitecture = offsetof(seccomp_data, arch);
constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr std::uint32_t kProtection = offsetof(seccomp_data, args) + 2 * sizeof(std::uint64_t);

sock_filter load(std::uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter return_action(std::uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
// `skipped`, `otherwise`: how many of the next instructions to skip.
sock_filter if_equal(std::uint32_t value, std::uint8_t skipped, std::uint8_t otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, skipped, otherwise);
}
sock_filter if_any(std::uint32_t bits, std::uint8_t skipped, std::uint8_t otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, skipped, otherwise);
}

std::vector<sock_filter> make_program() {
  const sock_filter kill = return_action(SECCOMP_RET_KILL_PROCESS);
  const sock_filter allow = return_action(SECCOMP_RET_ALLOW);
  std::vector<sock_filter> program{load(kArchitecture), if_equal(AUDIT_ARCH_X86_64, 1, 0), kill,
                                   load(kNumber)};
  for (const std::uint32_t number : kAllowed) program.insert(program.end(), {if_equal(number, 0, 1), allow});
  for (const std::uint32_t number : kAllowedWithoutExec) {
    program.insert(program.end(),
                   {if_equal(number, 0, 4), load(kProtection), if_any(PROT_EXEC, 0, 1), kill, allow});
  }
  program.push_back(kill);
  return program;
}

}  // namespace

bool filter_system_calls() {
  std::vector<sock_filter> program = make_program();
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

}  // namespace ptkit::confined
