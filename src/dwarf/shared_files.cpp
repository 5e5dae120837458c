#include "dwarf/shared_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <tuple>

#include "base/regular_file.h"
#include "image/elf.h"

namespace ptkit::dwarf {
namespace {

// A file that was not changed. A build-id alone would let one recording name another one's functions.
using Identity =
    std::tuple<std::string, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;

std::optional<Identity> identity_of(const std::string& build_id, const std::string& path) {
  struct stat seen {};
  if (::stat(path.c_str(), &seen) != 0 || !S_ISREG(seen.st_mode)) return std::nullopt;
  return Identity(build_id, seen.st_dev, seen.st_ino, static_cast<std::uint64_t>(seen.st_size),
                  static_cast<std::uint64_t>(seen.st_mtim.tv_sec),
                  static_cast<std::uint64_t>(seen.st_mtim.tv_nsec));
}

// The files of this process, the last used one first.
class Files {
 public:
  static Files& of_process() {
    static Files* const files = new Files;  // never destroyed: threads may use it to the end
    return *files;
  }

  SharedFile get(const std::string& build_id, const std::string& path) {
    const auto identity = identity_of(build_id, path);
    if (!identity) return {};
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(files_, *identity, &Entry::identity);
    if (known != files_.end()) {
      files_.splice(files_.begin(), files_, known);
      return files_.front().file;
    }
    files_.push_front({*identity, read(build_id, path)});
    if (files_.size() > kMost) files_.pop_back();
    return files_.front().file;
  }

 private:
  static constexpr std::size_t kMost = 256;

  struct Entry {
    Identity identity;
    SharedFile file;
  };

  static SharedFile read(const std::string& build_id, const std::string& path) {
    auto contents = trace::TraceBuffer::map_file(path);
    if (!contents.ok() || image::elf_build_id(contents.value().bytes()) != build_id) return {};
    auto info = DebugInfo::open(contents.value());
    return info ? SharedFile{std::move(contents.value()), std::move(info)} : SharedFile{};
  }

  std::mutex mutex_;
  std::list<Entry> files_;
};

}  // namespace

SharedFile debug_info_of(const trace::ImageFile& file) {
  if (!file.build_id.empty()) {
    SharedFile found = Files::of_process().get(file.build_id, file.path);
    if (found.info) return found;
  }
  if (file.contents.size() == 0) return {};
  auto info = DebugInfo::open(file.contents);
  return info ? SharedFile{file.contents, std::move(info)} : SharedFile{};
}

}  // namespace ptkit::dwarf
