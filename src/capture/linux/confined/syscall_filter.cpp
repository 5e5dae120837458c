#include "capture/linux/confined/syscall_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace ptkit::capture::confined {

namespace {

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
  [[nodiscard]] bool install() {
    add({kKill});
    const sock_fprog filter{static_cast<unsigned short>(program_.size()), program_.data()};
    return ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
  }

 private:
  static constexpr sock_filter kAllow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  static constexpr sock_filter kKill = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);

  void add(std::initializer_list<sock_filter> instructions) { program_.insert(program_.end(), instructions); }

  std::vector<sock_filter> program_{load(kArchitecture), if_equal(AUDIT_ARCH_X86_64, 1, 0), kKill,
                                    load(kNumber)};
};

}  // namespace

bool install_syscall_filter() {
  FilterProgram program;
  for (const std::uint32_t number : kAllowed) program.allow(number);
  for (const std::uint32_t number : kAllowedWithoutExec)
    program.allow_without(number, kProtectionArgument, PROT_EXEC);
  return program.install();
}

}  // namespace ptkit::capture::confined
