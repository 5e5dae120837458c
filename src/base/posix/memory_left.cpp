#include "base/memory_left.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace ptkit::base {
namespace {

// Reads a file of /proc or of a cgroup: stat() does not give its size. Empty if there is no file.
[[nodiscard]] std::string read_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::string text;
  constexpr std::size_t kStep = 16384;
  for (ssize_t count = 1; count > 0;) {
    const std::size_t before = text.size();
    text.resize(before + kStep);
    count = ::read(file, text.data() + before, kStep);
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  static_cast<void>(::close(file));
  return text;
}

// Removes and returns the text up to the separator.
[[nodiscard]] std::string_view take_until(std::string_view& text, char separator) noexcept {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

[[nodiscard]] std::optional<std::uint64_t> number_of(std::string_view text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

// The number after a name at the beginning of a line.
[[nodiscard]] std::optional<std::uint64_t> named_number(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = take_until(text, '\n');
    if (line.starts_with(name)) return number_of(line.substr(name.size()));
  }
  return std::nullopt;
}

[[nodiscard]] std::uint64_t minus(std::uint64_t whole, std::uint64_t part) noexcept {
  return whole - std::min(whole, part);
}

constexpr std::uint64_t kKilobyte = 1024;

void look_at_resource_limits(const std::string& root, MemoryLeft& left) {
  const std::string limits = read_file(root + "/proc/self/limits");
  const auto address_space = named_number(limits, "Max address space ");
  const auto data = named_number(limits, "Max data size ");
  if (!address_space && !data) return;
  const std::string status = read_file(root + "/proc/self/status");
  const auto used = [&](std::string_view name) { return named_number(status, name).value_or(0) * kKilobyte; };
  if (address_space)
    left.address_space.lower_to(minus(*address_space, used("VmSize:")), MemoryLimit::RLIMIT_AS);
  if (data) left.address_space.lower_to(minus(*data, used("VmData:")), MemoryLimit::RLIMIT_DATA);
}

// The file names of a memory controller.
struct Controller {
  std::string_view maximum, used, inactive_file, active_file;
};
constexpr Controller kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file ",
                               "total_active_file "};
constexpr Controller kVersion2{"/memory.max", "/memory.current", "inactive_file ", "active_file "};

// Nothing if there is no limit: version 1 writes a large number.
[[nodiscard]] std::optional<std::uint64_t> maximum_of(const std::string& folder, const Controller& names) {
  const auto maximum = number_of(read_file(folder + std::string(names.maximum)));
  return maximum && *maximum < INT64_MAX / 2 ? maximum : std::nullopt;
}

void look_at_cgroup(const std::string& folder, const Controller& names, MemoryLeft& left) {
  const auto maximum = maximum_of(folder, names);
  if (!maximum) return;
  const auto used = number_of(read_file(folder + std::string(names.used)));
  if (!used) return;
  const std::string statistics = read_file(folder + "/memory.stat");
  const std::uint64_t cache = named_number(statistics, names.inactive_file).value_or(0) +
                              named_number(statistics, names.active_file).value_or(0);
  left.pages.lower_to(minus(*maximum, minus(*used, cache)), MemoryLimit::CGROUP);
}

// The mount point of a hierarchy with a memory controller, and the cgroup at the mount point.
struct Mount {
  std::string cgroup, folder;
  bool version2 = false;
};

[[nodiscard]] bool has_word(std::string_view words, std::string_view wanted) noexcept {
  while (!words.empty()) {
    if (take_until(words, ',') == wanted) return true;
  }
  return false;
}

// Lines are "36 35 98:0 /root /mount/point options [more] - type source super-options".
[[nodiscard]] std::vector<Mount> memory_mounts(const std::string& mountinfo) {
  std::vector<Mount> mounts;
  std::string_view text = mountinfo;
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::size_t dash = line.find(" - cgroup");
    if (dash == std::string_view::npos) continue;
    std::string_view tail = line.substr(dash + 3);
    for (int field = 0; field < 3; ++field) static_cast<void>(take_until(line, ' '));
    const std::string_view cgroup = take_until(line, ' ');
    const std::string_view folder = take_until(line, ' ');
    const bool version2 = take_until(tail, ' ') == "cgroup2";
    static_cast<void>(take_until(tail, ' '));
    if (version2 || has_word(tail, "memory"))
      mounts.push_back({std::string(cgroup), std::string(folder), version2});
  }
  return mounts;
}

// The cgroup of this process: lines are "4:memory:/path" and "0::/path".
[[nodiscard]] std::optional<std::string> own_cgroup(std::string_view text, bool version2) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view number = take_until(line, ':');
    const std::string_view controllers = take_until(line, ':');
    const bool fits = version2 ? number == "0" && controllers.empty() : has_word(controllers, "memory");
    if (fits) return std::string(line);
  }
  return std::nullopt;
}

// Calls visit(folder, controller) for the cgroup of this process and those above it.
template <typename Visit>
void for_each_cgroup(const std::string& root, Visit visit) {
  const std::string cgroups = read_file(root + "/proc/self/cgroup");
  for (const Mount& mount : memory_mounts(read_file(root + "/proc/self/mountinfo"))) {
    auto path = own_cgroup(cgroups, mount.version2);
    if (!path) continue;
    // A container has its own cgroup at the mount point. The host's name differs.
    if (mount.cgroup != "/") *path = path->starts_with(mount.cgroup) ? path->substr(mount.cgroup.size()) : "";
    if (*path == "/") path->clear();
    const Controller& names = mount.version2 ? kVersion2 : kVersion1;
    for (;;) {
      visit(root + mount.folder + *path, names);
      if (path->empty()) break;
      path->resize(std::min(path->rfind('/'), path->size() - 1));
    }
  }
}

}  // namespace

MemoryLeft memory_left(const std::string& root) {
  MemoryLeft left;
  look_at_resource_limits(root, left);
  for_each_cgroup(
      root, [&](const std::string& folder, const Controller& names) { look_at_cgroup(folder, names, left); });
  const auto available = named_number(read_file(root + "/proc/meminfo"), "MemAvailable:");
  if (available) left.pages.lower_to(*available * kKilobyte, MemoryLimit::MEM_AVAILABLE);
  return left;
}

std::uint64_t memory_limit(const std::string& root) {
  const auto total = named_number(read_file(root + "/proc/meminfo"), "MemTotal:");
  std::uint64_t least = total ? *total * kKilobyte : UINT64_MAX;
  for_each_cgroup(root, [&](const std::string& folder, const Controller& names) {
    least = std::min(least, maximum_of(folder, names).value_or(UINT64_MAX));
  });
  return least;
}

}  // namespace ptkit::base
