#include "capture/linux/files/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "base/addresses.h"
#include "base/paths.h"
#include "base/posix/map_memory.h"

namespace ptkit::capture {

namespace {

using Found = MappedFile::Found;

using base::kPageBytes;

std::string path_of(const Fd& file) { return "/proc/self/fd/" + std::to_string(file.get()); }

Fd open_path(const std::string& path) { return Fd(::open(path.c_str(), O_PATH | O_CLOEXEC)); }

std::string map_files_name(const Mapping& mapping) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "/map_files/%llx-%llx",
                static_cast<unsigned long long>(mapping.begin), static_cast<unsigned long long>(mapping.end));
  return text.data();
}

bool is_regular(const Fd& file) {
  struct stat info {};
  return ::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode);
}

// A process's folder in /proc, held by O_PATH. It stays empty after the process's end, even if another
// process gets the PID.
class ProcFolder {
 public:
  explicit ProcFolder(pid_t pid) : folder_(open_path(folder_of(pid))), path_(path_of(folder_)) {}

  [[nodiscard]] bool exists() const noexcept { return folder_.get() >= 0; }
  [[nodiscard]] std::string root() const { return path_ + "/root/"; }
  [[nodiscard]] std::string map_file(const Mapping& mapping) const { return path_ + map_files_name(mapping); }

  // The current mapping that matches a recorded one.
  [[nodiscard]] std::optional<Mapping> find(const Mapping& recorded) const {
    if (!exists()) return {};
    std::optional<Mapping> found;
    for (Mapping& one : read_maps_in(path_)) {
      if (!is_same(one, recorded)) continue;
      const bool better = !found || one.begin == recorded.begin;
      if (better) found = std::move(one);
    }
    return found;
  }
  // Whether the process is in another mount namespace.
  [[nodiscard]] bool has_other_mounts() const {
    struct stat own {};
    struct stat other {};
    return exists() && ::stat("/proc/self/ns/mnt", &own) == 0 &&
           ::stat((path_ + "/ns/mnt").c_str(), &other) == 0 && own.st_ino != other.st_ino;
  }

 private:
  // /proc/PID/task/TID has no map_files, but /proc/TID has.
  static std::string folder_of(pid_t pid) {
    const std::string folder = process_folder(pid);
    const std::size_t task = folder.find("/task/");
    return task == std::string::npos ? folder : "/proc/" + folder.substr(task + 6);
  }
  static bool is_same(const Mapping& now, const Mapping& recorded) {
    if (now.inode == 0) return false;
    if (recorded.inode != 0) return now.inode == recorded.inode && now.device == recorded.device;
    return base::without_mark(now.path) == base::without_mark(recorded.path) &&
           (recorded.begin == 0 || now.begin == recorded.begin);
  }

  Fd folder_;
  std::string path_;
};

// Opens a path under a folder by O_PATH, if no part of the path is a link.
Fd follow(const std::string& root, std::string_view path) {
  Fd at(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  while (at.get() >= 0 && !path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string name(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
    if (name.empty()) continue;
    if (name == "..") errno = EINVAL;
    at = name == ".." ? Fd() : Fd(::openat(at.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  }
  return at;
}

Fd reopen(const Fd& located) {
  return Fd(::open(path_of(located).c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

// Whether /proc/self/maps shows the mapping's device and inode if this process maps the file. Reads no byte
// of it.
bool maps_as(const Fd& file, const Mapping& mapping) {
  if (file.get() < 0) return false;
  void* const page = base::map_memory(kPageBytes, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (page == MAP_FAILED) return false;
  const auto address = reinterpret_cast<std::uint64_t>(page);
  const std::vector<Mapping> maps = read_maps_in("/proc/self");
  ::munmap(page, kPageBytes);
  return std::any_of(maps.begin(), maps.end(), [&](const Mapping& one) {
    return one.begin <= address && address < one.end && one.device == mapping.device &&
           one.inode == mapping.inode;
  });
}

// Whether a regular file is the file of the mapping.
bool is_mapped_file(const Fd& located, const Mapping& mapping, const BuildIdOf& build_id_of) {
  if (mapping.inode == 0) {
    const Fd file = mapping.build_id.empty() ? Fd() : reopen(located);
    return file.get() >= 0 && build_id_of(file) == mapping.build_id;
  }
  struct stat info {};
  if (::fstat(located.get(), &info) != 0) return false;
  if (info.st_ino == mapping.inode && info.st_dev == mapping.device) return true;
  return maps_as(reopen(located), mapping);
}

// Whether the file may be younger than the recording and not all users may read it.
bool is_new_private_file(const Fd& located, std::int64_t began_ns) {
  struct statx info {};
  constexpr unsigned kWanted = STATX_MODE | STATX_BTIME | STATX_CTIME;
  if (::statx(located.get(), "", AT_EMPTY_PATH, kWanted, &info) != 0) return true;
  if ((info.stx_mode & S_IROTH) != 0) return false;
  const statx_timestamp& since = (info.stx_mask & STATX_BTIME) != 0 ? info.stx_btime : info.stx_ctime;
  return since.tv_sec * 1'000'000'000 + since.tv_nsec >= began_ns;
}

// The root folders for a path of the process.
std::vector<std::string> roots_of(const ProcFolder& process) {
  std::vector<std::string> roots;
  if (process.exists()) roots.push_back(process.root());
  // After chroot(), /proc/PID/maps shows paths from this process's root.
  if (!process.has_other_mounts()) roots.emplace_back("/");
  return roots;
}

template <typename Accept>
MappedFile find_by_path(const ProcFolder& process, const std::string& path, const Accept& accept) {
  MappedFile out;
  for (const std::string& root : roots_of(process)) {
    Fd file = follow(root, base::without_mark(path));
    if (file.get() < 0) {
      out.error = errno;
      continue;
    }
    if (is_regular(file) && accept(file)) return {Found::FILE, 0, std::move(file)};
    out.found = Found::ANOTHER;
    out.error = ESTALE;
  }
  return out;
}

}  // namespace

MappedFile locate_mapped(pid_t pid, const Mapping& mapping, std::int64_t began_ns,
                         const BuildIdOf& build_id_of) {
  const ProcFolder process(pid);
  const std::optional<Mapping> now = process.find(mapping);
  if (now) {
    Fd file = open_path(process.map_file(*now));
    const bool regular = is_regular(file);
    if (file.get() >= 0)
      return {regular ? Found::FILE : Found::ANOTHER, regular ? 0 : ENODEV, std::move(file)};
  }
  return find_by_path(process, mapping.path, [&](const Fd& file) {
    return is_mapped_file(file, now ? *now : mapping, build_id_of) &&
           (now || !is_new_private_file(file, began_ns));
  });
}

MappedFile locate_path(pid_t pid, const std::string& path) {
  return find_by_path(ProcFolder(pid), path, [](const Fd&) { return true; });
}

MappedFile locate_own_file(pid_t pid, const std::string& path, uid_t user) {
  return find_by_path(ProcFolder(pid), path, [user](const Fd& file) {
    struct stat info {};
    return ::fstat(file.get(), &info) == 0 && info.st_uid == user && info.st_nlink == 1;
  });
}

MappedFile reopened(MappedFile located) {
  if (located.found != Found::FILE) return located;
  Fd file = reopen(located.file);
  if (file.get() < 0) return {Found::NOTHING, errno, Fd()};
  return {Found::FILE, 0, std::move(file)};
}

std::string key_of(pid_t pid, const Mapping& mapping) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const std::string path(base::without_mark(mapping.path));
  std::string key = path + '\n';
  struct stat info {};
  const bool known = ::stat((folder + map_files_name(mapping)).c_str(), &info) == 0 ||
                     ::stat((folder + "/root" + path).c_str(), &info) == 0 ||
                     ::stat(path.c_str(), &info) == 0;
  const bool recorded = mapping.inode != 0;
  if (recorded && !(known && info.st_ino == mapping.inode && info.st_dev == mapping.device))
    key += std::to_string(mapping.device) + ' ' + std::to_string(mapping.inode) + ' ';
  if (!known) return key;
  return key + std::to_string(info.st_dev) + ' ' + std::to_string(info.st_ino) + ' ' +
         std::to_string(info.st_mtim.tv_sec) + ' ' + std::to_string(info.st_mtim.tv_nsec);
}

std::optional<FileExtents::Extent> FileExtents::next() {
  if (at_ >= to_) return {};
  const off_t data = ::lseek(file_.get(), static_cast<off_t>(at_), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return {};  // only a hole up to the file's end
  // File systems without SEEK_DATA read holes as zeros.
  const std::uint64_t begin = data < 0 ? at_ : static_cast<std::uint64_t>(data);
  if (begin >= to_) return {};
  const off_t hole = data < 0 ? data : ::lseek(file_.get(), data, SEEK_HOLE);
  at_ = hole > data ? std::min(to_, static_cast<std::uint64_t>(hole)) : to_;
  return Extent{begin, at_};
}

trace::TraceBuffer read_whole(const Fd& file, std::uint64_t bytes, bool& shrunk) {
  const off_t end = ::lseek(file.get(), 0, SEEK_END);
  const auto size =
      static_cast<std::size_t>(end > 0 ? std::min<std::uint64_t>(bytes, static_cast<std::uint64_t>(end)) : 0);
  shrunk = shrunk || size < bytes;
  if (size == 0) return {};
  void* const memory =
      base::map_memory(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return {};
  auto* const begin = static_cast<std::uint8_t*>(memory);
  trace::TraceBuffer out({begin, size},
                         std::shared_ptr<const void>(memory, [size](void* at) { ::munmap(at, size); }));
  FileExtents extents(file, 0, size);
  while (const auto extent = extents.next()) {
    const std::span<std::uint8_t> to(begin + extent->begin, extent->end - extent->begin);
    if (read_at(file, extent->begin, to) != to.size()) {
      shrunk = true;
      break;
    }
  }
  return out;
}

}  // namespace ptkit::capture
