#include "image/code_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace ptkit::image {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".code";
constexpr std::size_t kLongestId = 128;

// A build-id becomes a file's name.
bool is_build_id(const std::string& text) noexcept {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return text.size() >= 8 && text.size() <= kLongestId && std::all_of(text.begin(), text.end(), is_hex);
}

bool write_all(int fd, base::Bytes bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

// Through a file of its own, which then gets the name.
bool replace_file(const std::string& path, base::Bytes bytes) {
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write_all(fd, bytes);
  const bool closed = ::close(fd) == 0;
  if (written && closed && ::rename(temporary.c_str(), path.c_str()) == 0) return true;
  (void)::unlink(temporary.c_str());
  return false;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

CodeFolder CodeFolder::of_user() {
  if (std::getenv("PTKIT_CACHE") != nullptr) {
    const std::string own = variable("PTKIT_CACHE");
    return CodeFolder(own.empty() ? own : own + "/code");
  }
  std::string caches = variable("XDG_CACHE_HOME");
  // Relative paths there are to be ignored (XDG base directory specification).
  if (caches.empty() || caches.front() != '/') {
    const std::string home = variable("HOME");
    if (home.empty()) return CodeFolder("");
    caches = home + "/.cache";
  }
  return CodeFolder(caches + "/ptkit/code");
}

std::string CodeFolder::file_of(const std::string& build_id, insn::ExecMode mode) const {
  return path_ + '/' + build_id + '-' + std::to_string(static_cast<unsigned>(mode)) + kEnding;
}

std::unique_ptr<KeptCode> CodeFolder::open(const std::string& build_id, insn::ExecMode mode) const {
  if (path_.empty() || !is_build_id(build_id)) return nullptr;
  auto opened = KeptCode::open(file_of(build_id, mode), build_id, mode);
  return opened.ok() ? std::move(opened.value()) : nullptr;
}

bool CodeFolder::save(const std::string& build_id, KeptLines& lines, insn::ExecMode mode) const {
  if (path_.empty() || !is_build_id(build_id)) return false;
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) return false;
  // What another process wrote in the meantime stays, except what it writes right now.
  if (const auto kept = open(build_id, mode)) lines.add_all(*kept);
  if (!replace_file(file_of(build_id, mode), lines.file_bytes(build_id))) return false;
  drop_oldest();
  return true;
}

void CodeFolder::drop_oldest() const {
  struct Entry {
    fs::file_time_type time;
    std::uint64_t size;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code error;
  // Temporary files of processes that died count too.
  for (fs::directory_iterator at(path_, error), end; !error && at != end; at.increment(error)) {
    std::error_code gone;
    Entry entry{at->last_write_time(gone), at->file_size(gone), at->path()};
    if (gone) continue;
    total += entry.size;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (const Entry& entry : entries) {
    if (total <= most_bytes_) break;
    if (fs::remove(entry.path, error)) total -= entry.size;
  }
}

bool KeptFiles::can_keep(std::int32_t file) const noexcept {
  return !off() && file >= 0 && static_cast<std::size_t>(file) < bundle_.files.size() &&
         is_build_id(bundle_.files[static_cast<std::size_t>(file)].build_id);
}

const KeptCode* KeptFiles::of(std::int32_t file, insn::ExecMode mode) {
  if (!can_keep(file)) return nullptr;
  const std::scoped_lock lock(mutex_);
  const auto [found, is_new] = opened_.try_emplace({file, mode});
  if (is_new) found->second = folder_.open(bundle_.files[static_cast<std::size_t>(file)].build_id, mode);
  return found->second.get();
}

bool KeptFiles::save(std::int32_t file, insn::ExecMode mode, KeptLines& lines) const {
  return can_keep(file) && folder_.save(bundle_.files[static_cast<std::size_t>(file)].build_id, lines, mode);
}

void if_memory_allows(const std::function<void()>& work) noexcept {
  try {
    work();
  } catch (...) {  // NOLINT(bugprone-empty-catch): there is nobody to tell
  }
}

}  // namespace ptkit::image
