// In a chroot, /proc/PID/maps of a process in another mount namespace has paths from that namespace's root.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <string>

#include "capture/linux/process/process.h"

namespace ptkit {

inline constexpr const char* kPrefixInChroot = "in a chroot, paths of another mount namespace have a prefix";

// Whether a file that a process has mapped is shown with more in front of its path.
inline bool shows_prefix(pid_t pid, const std::string& path) {
  const auto maps = capture::read_maps(pid);
  return std::any_of(maps.begin(), maps.end(), [&](const auto& one) {
    const std::size_t at = one.path.find(path);
    return at != std::string::npos && at > 0;
  });
}

}  // namespace ptkit
