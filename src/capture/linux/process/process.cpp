#include "capture/linux/process/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

namespace ptkit::capture {

namespace {

std::uint64_t take_hex(std::string_view& text) {
  std::uint64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  if (!text.empty()) text.remove_prefix(1);  // the separator
  return value;
}

std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), &::closedir);
  if (open == nullptr) return out;
  while (const dirent* entry =
             ::readdir(open.get())) {  // NOLINT(concurrency-mt-unsafe): no other thread uses this stream
    pid_t number = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    const auto [stop, error] = std::from_chars(entry->d_name, end, number);
    if (error == std::errc() && stop == end) out.push_back(number);
  }
  return out;
}

}  // namespace

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Fd open_process(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

int exit_status_of(int wait_status) noexcept {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

Memory::Memory(pid_t pid) : fd_(::open((process_folder(pid) + "/mem").c_str(), O_RDWR | O_CLOEXEC)) {}

std::size_t Memory::read(std::uint64_t address, std::span<std::uint8_t> out) const {
  const ssize_t size = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(address));
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

bool Memory::write_byte(std::uint64_t address, std::uint8_t value) const {
  return ::pwrite(fd_.get(), &value, 1, static_cast<off_t>(address)) == 1;
}

std::string process_folder(pid_t pid) {
  std::string folder = "/proc/" + std::to_string(pid);
  if (::access((folder + "/root").c_str(), F_OK) == 0 || errno != ENOENT) return folder;
  for (const pid_t tid : threads_of(pid)) {
    std::string other = folder + "/task/" + std::to_string(tid);
    if (tid != pid && ::access((other + "/root").c_str(), F_OK) == 0) return other;
  }
  return folder;
}

std::vector<Mapping> read_maps(pid_t pid) { return read_maps_in(process_folder(pid)); }

std::vector<Mapping> read_maps_in(const std::string& folder) {
  std::ifstream file(folder + "/maps");
  std::vector<Mapping> mappings;
  for (std::string line; std::getline(file, line);) {
    std::string_view rest(line);
    Mapping mapping;
    mapping.begin = take_hex(rest);
    mapping.end = take_hex(rest);
    if (rest.size() < 5) continue;
    mapping.writable = rest[1] == 'w';
    mapping.executable = rest[2] == 'x';
    mapping.shared = rest[3] == 's';
    rest.remove_prefix(5);
    mapping.offset = take_hex(rest);
    // device ("08:01"), inode, blanks, path
    const auto major = static_cast<unsigned>(take_hex(rest));
    mapping.device = makedev(major, static_cast<unsigned>(take_hex(rest)));
    const auto number = std::from_chars(rest.data(), rest.data() + rest.size(), mapping.inode);
    rest.remove_prefix(static_cast<std::size_t>(number.ptr - rest.data()));
    const auto path = rest.find_first_not_of(' ');
    if (path != std::string_view::npos) mapping.path = rest.substr(path);
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

bool is_thread_of(pid_t pid, pid_t tid) {
  return ::access(("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid)).c_str(), F_OK) == 0;
}

std::vector<pid_t> processes() { return numbers_in("/proc"); }

std::vector<pid_t> threads_of(pid_t pid) { return numbers_in("/proc/" + std::to_string(pid) + "/task"); }

std::string thread_name(pid_t pid, pid_t tid) {
  return first_line("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/comm");
}

namespace {

// Where a link in the process's folder leads to.
std::string link_of(pid_t pid, const char* name) {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink((process_folder(pid) + name).c_str(), path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

}  // namespace

std::string program_path(pid_t pid) { return link_of(pid, "/exe"); }

std::string working_directory(pid_t pid) { return link_of(pid, "/cwd"); }

std::optional<ProcessIdentity> identity_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  ProcessIdentity out;
  out.own_pid = pid;
  bool has_user = false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    uid_t real = 0;
    if (name == "Uid:") has_user = static_cast<bool>(words >> real >> out.user);
    if (name != "NSpid:") continue;
    for (pid_t one = 0; words >> one;) out.own_pid = one;  // the innermost namespace comes last
  }
  return has_user ? std::optional(out) : std::nullopt;
}

}  // namespace ptkit::capture
