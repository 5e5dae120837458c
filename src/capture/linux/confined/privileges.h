// The privileges of the calling process, and how it drops them permanently.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace ptkit::capture::confined {

constexpr uid_t kOverflowUser = 65534;  // the kernel's overflowuid and overflowgid

// User 0, or any permitted capability (capabilities(7)).
[[nodiscard]] bool has_privileges();

enum class Privileges : std::uint8_t {
  NONE,       // an ordinary user without capabilities; execve() gives none
  ROOT_USER,  // the same, but user 0: setresuid() is forbidden, or the user namespace has no other user
  LEFT,       // a step failed
};
// Drops supplementary groups, user, group and capabilities, and sets no_new_privs. For a single-threaded
// process: other threads keep their privileges.
[[nodiscard]] Privileges drop_privileges();

}  // namespace ptkit::capture::confined
