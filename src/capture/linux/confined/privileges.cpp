#include "capture/linux/confined/privileges.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace ptkit::capture::confined {

namespace {

using Capabilities = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

bool read_capabilities(Capabilities& words) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  return ::syscall(SYS_capget, &header, words.data()) == 0;
}

bool has_effective(const Capabilities& words, unsigned capability) {
  return (words[capability / 32].effective >> capability % 32 & 1U) != 0;
}

// Needs CAP_SETPCAP. Without the capability, no_new_privs has the same effect.
void drop_bounding_set() {
  for (int one = 0; ::prctl(PR_CAPBSET_DROP, one, 0, 0, 0) == 0; ++one) {
  }
}

bool drop_capabilities() {
  static_cast<void>(::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const Capabilities none{};
  Capabilities left{};
  return ::syscall(SYS_capset, &header, none.data()) == 0 && read_capabilities(left) &&
         std::ranges::all_of(left, [](const __user_cap_data_struct& one) {
           return (one.effective | one.permitted | one.inheritable) == 0;
         });
}

// Direct system calls: the C library's functions change all threads and take locks.
bool set_user(uid_t user) { return ::syscall(SYS_setresuid, user, user, user) == 0; }
bool set_group(gid_t group) { return ::syscall(SYS_setresgid, group, group, group) == 0; }

// Returns true if the user was changed, or if this process cannot change it. EINVAL: the user namespace has
// no such user.
bool become_overflow_user() {
  Capabilities words{};
  if (!read_capabilities(words)) return false;
  if (!has_effective(words, CAP_SETUID) || !has_effective(words, CAP_SETGID)) return true;
  if (!set_group(kOverflowUser)) return errno == EINVAL;
  if (::syscall(SYS_setgroups, 0, nullptr) != 0) return false;
  return set_user(kOverflowUser) || errno == EINVAL;
}

bool is_root() {
  uid_t real = 0;
  uid_t effective = 0;
  uid_t saved = 0;
  return ::getresuid(&real, &effective, &saved) != 0 || real == 0 || effective == 0 || saved == 0;
}

}  // namespace

bool has_privileges() {
  Capabilities words{};
  return ::geteuid() == 0 || !read_capabilities(words) ||
         std::ranges::any_of(words, [](const __user_cap_data_struct& one) { return one.permitted != 0; });
}

Privileges drop_privileges() {
  drop_bounding_set();
  if (!become_overflow_user() || !drop_capabilities() || ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return Privileges::LEFT;
  return is_root() ? Privileges::ROOT_USER : Privileges::NONE;
}

}  // namespace ptkit::capture::confined
